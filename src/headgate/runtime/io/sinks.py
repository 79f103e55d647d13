"""How each sink gets the rows of an epoch: once per (sink, fragment, epoch), whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.model.task_type import TaskConfig
from headgate.runtime.compile.plan import CompiledTask
from headgate.runtime.io.sources import check_kafka
from headgate.tasks.functions import load_function
from headgate.tasks.mqtt import WriteMqtt
from headgate.tasks.mqtt_client import check_mqtt, publish
from headgate.tasks.sinks import WriteCall, WriteConsole, WriteFiles, WriteKafka, WriteMemory, WriteTable

__all__ = ["Delivery", "Memory", "check_sink", "deliver", "form_of"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """The rows of one epoch of one fragment for one sink, in staged files.

    An epoch that holds rows of several snapshots makes a delivery for each.
    """

    fragment: str
    epoch: int
    snapshot: int
    files: Sequence[tuple[str, int]]

    @property
    def origin(self) -> str:
        """Where the rows come from; with the epoch it tells deliveries to one sink apart."""
        return f"{self.fragment}-{self.snapshot}"

    @property
    def rows(self) -> int:
        return sum(count for _, count in self.files)

    def table(self) -> pa.Table:
        """The rows, from Arrow files."""
        tables = []
        for path, _ in self.files:
            with pa.OSFile(path) as file:
                tables.append(pa.ipc.open_file(file).read_all())
        return pa.concat_tables(tables)


class Memory:
    """What sinks of type write_memory keep, by name."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[tuple[int, str], pa.Table]] = {}

    def put(self, name: str, delivery: Delivery) -> None:
        self._kept.setdefault(name, {})[delivery.epoch, delivery.origin] = delivery.table()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows kept under a name, in the order of epochs."""
        return [row for _, table in sorted(self._kept.get(name, {}).items()) for row in table.to_pylist()]

    def epochs(self, name: str) -> dict[tuple[int, str], pa.Table]:
        return dict(self._kept.get(name, {}))


def check_sink(options: TaskConfig, spark: SparkSession) -> None:
    """Raise :class:`InputError` for a sink that can never work as this engine is set up."""
    if isinstance(options, WriteCall):
        load_function(options.function)
    elif isinstance(options, WriteKafka):
        check_kafka(spark)
    elif isinstance(options, WriteMqtt):
        check_mqtt(options)
    elif isinstance(options, WriteTable):
        try:
            _database(options.url)
        except ImportError as error:
            told = f"the database needs the package {error.name}, which is not there; install it"
            raise InputError("SINK_UNUSABLE", told) from None
        except Exception as error:  # whatever SQLAlchemy and its dialects have against a URL
            raise InputError("SINK_UNUSABLE", f"not a database that can be used: {error}") from None


def form_of(options: TaskConfig) -> str:
    """The form in which the workers stage the rows of a sink."""
    return options.format if isinstance(options, WriteFiles) else "arrow"


def deliver(task: CompiledTask, delivery: Delivery, spark: SparkSession, memory: Memory) -> None:
    """Hand an epoch's rows over; doing it again does nothing more (for files, tables and memory)."""
    options = task.options
    if isinstance(options, WriteFiles):
        _to_files(options, delivery)
    elif isinstance(options, WriteMemory):
        memory.put(options.name, delivery)
    elif isinstance(options, WriteTable):
        _to_table(task.signature, options, delivery)
    elif isinstance(options, WriteConsole):
        _to_console(task, options, delivery)
    elif isinstance(options, WriteCall):
        load_function(options.function)(delivery.table().to_pylist(), delivery.epoch)
    elif isinstance(options, WriteKafka):
        _to_kafka(options, delivery, spark)
    elif isinstance(options, WriteMqtt):
        publish(options, delivery.table().to_pylist())


def _to_files(options: WriteFiles, delivery: Delivery) -> None:
    folder = Path(options.path)
    folder.mkdir(parents=True, exist_ok=True)
    for index, (staged, _) in enumerate(delivery.files):
        final = folder / f"part-{delivery.epoch:08d}-{delivery.origin}-{index}{Path(staged).suffix}"
        _move(Path(staged), final)


def _move(staged: Path, final: Path) -> None:
    """Put a file where it belongs in one step; one that is there already has been put there before."""
    try:
        os.replace(staged, final)  # noqa: PTH105
    except FileNotFoundError:
        if not final.exists():
            raise
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        beside = final.with_name(f".{final.name}.tmp")
        shutil.copyfile(staged, beside)
        beside.replace(final)
        staged.unlink()


def _to_table(sink: str, options: WriteTable, delivery: Delivery) -> None:
    import sqlalchemy as sa

    engine = _database(options.url)
    metadata = sa.MetaData()
    commits = sa.Table(
        "headgate_commits",
        metadata,
        sa.Column("sink", sa.String(64), primary_key=True),
        sa.Column("origin", sa.String(64), primary_key=True),
        sa.Column("epoch", sa.BigInteger, primary_key=True),
    )
    commits.create(engine, checkfirst=True)
    key = {"sink": sink, "origin": delivery.origin, "epoch": delivery.epoch}
    wanted = sa.select(commits.c.epoch).where(*(commits.c[name] == value for name, value in key.items()))
    with engine.begin() as connection:
        # What has been taken need not be there any more.
        if connection.execute(wanted).first() is not None:
            return
    table = delivery.table()
    target = sa.Table(options.table, metadata, *(sa.Column(f.name, _sql_type(f.type)) for f in table.schema))
    target.create(engine, checkfirst=True)
    with engine.begin() as connection:
        connection.execute(commits.insert(), [key])
        connection.execute(target.insert(), table.to_pylist())


_DATABASES: dict[str, Any] = {}


def _database(url: str) -> Any:
    import sqlalchemy as sa

    if url not in _DATABASES:
        place = sa.engine.make_url(url)
        if place.get_backend_name() == "sqlite" and place.database not in (None, "", ":memory:"):
            Path(str(place.database)).parent.mkdir(parents=True, exist_ok=True)  # as files get their folder
        # Arrays and structs are stored as JSON; a time or a decimal within one becomes a text.
        _DATABASES[url] = sa.create_engine(url, json_serializer=partial(json.dumps, default=str))
    return _DATABASES[url]


def _sql_type(kind: pa.DataType) -> Any:
    import sqlalchemy as sa

    known: list[tuple[Callable[[pa.DataType], bool], Any]] = [
        (pa.types.is_boolean, sa.Boolean()),
        (pa.types.is_integer, sa.BigInteger()),
        (pa.types.is_floating, sa.Double()),
        (pa.types.is_decimal, sa.Numeric()),
        (pa.types.is_timestamp, sa.DateTime(timezone=True)),
        (pa.types.is_date, sa.Date()),
        (pa.types.is_binary, sa.LargeBinary()),
        (pa.types.is_string, sa.Text()),
    ]
    return next((found for test, found in known if test(kind)), sa.JSON(none_as_null=True))


def _to_console(task: CompiledTask, options: WriteConsole, delivery: Delivery) -> None:
    table = delivery.table()
    print(f"{task.name}, epoch {delivery.epoch}: {table.num_rows} rows")
    for row in table.slice(0, options.rows).to_pylist():
        print("  " + ", ".join(f"{name}={value}" for name, value in row.items()))


def _to_kafka(options: WriteKafka, delivery: Delivery, spark: SparkSession) -> None:
    frame = spark.createDataFrame(delivery.table())
    value = "value" if "value" in frame.columns else "to_json(struct(*)) as value"
    key = [f"cast(`{options.key}` as string) as key"] if options.key else []
    writer = frame.selectExpr(value, *key).write.format("kafka")
    writer.option("kafka.bootstrap.servers", options.servers).option("topic", options.topic).save()
