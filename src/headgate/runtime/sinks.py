"""How each sink gets the rows of an epoch: once per (sink, fragment, epoch), whatever happens in between."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.task_type import TaskConfig
from headgate.runtime.plan import RunningTask
from headgate.tasks.frames import load_function
from headgate.tasks.sinks import WriteCall, WriteConsole, WriteFiles, WriteKafka, WriteMemory, WriteTable

__all__ = ["Delivery", "Memory", "deliver", "form_of"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """The rows of one epoch of one fragment for one sink, in staged files."""

    fragment: str
    epoch: int
    files: Sequence[tuple[str, int]]

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
        self._kept.setdefault(name, {})[delivery.epoch, delivery.fragment] = delivery.table()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows kept under a name, in the order of epochs."""
        return [row for _, table in sorted(self._kept.get(name, {}).items()) for row in table.to_pylist()]

    def epochs(self, name: str) -> dict[tuple[int, str], pa.Table]:
        return dict(self._kept.get(name, {}))


def form_of(options: TaskConfig) -> str:
    """The form in which the workers stage the rows of a sink."""
    return options.format if isinstance(options, WriteFiles) else "arrow"


def deliver(task: RunningTask, delivery: Delivery, spark: SparkSession, memory: Memory) -> None:
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


def _to_files(options: WriteFiles, delivery: Delivery) -> None:
    folder = Path(options.path)
    folder.mkdir(parents=True, exist_ok=True)
    for index, (staged, _) in enumerate(delivery.files):
        final = folder / f"part-{delivery.epoch:08d}-{delivery.fragment}-{index}{Path(staged).suffix}"
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

    table = delivery.table()
    engine = _database(options.url)
    metadata = sa.MetaData()
    commits = sa.Table(
        "headgate_commits",
        metadata,
        sa.Column("sink", sa.String(64), primary_key=True),
        sa.Column("fragment", sa.String(64), primary_key=True),
        sa.Column("epoch", sa.BigInteger, primary_key=True),
    )
    target = sa.Table(options.table, metadata, *(sa.Column(f.name, _sql_type(f.type)) for f in table.schema))
    metadata.create_all(engine, checkfirst=True)
    key = {"sink": sink, "fragment": delivery.fragment, "epoch": delivery.epoch}
    with engine.begin() as connection:
        wanted = sa.select(commits.c.epoch).where(*(commits.c[name] == value for name, value in key.items()))
        if connection.execute(wanted).first() is None:
            connection.execute(target.insert(), table.to_pylist())
            connection.execute(commits.insert(), [key])


_DATABASES: dict[str, Any] = {}


def _database(url: str) -> Any:
    import sqlalchemy as sa

    if url not in _DATABASES:
        _DATABASES[url] = sa.create_engine(url)
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
    return next((found for test, found in known if test(kind)), sa.JSON())


def _to_console(task: RunningTask, options: WriteConsole, delivery: Delivery) -> None:
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
