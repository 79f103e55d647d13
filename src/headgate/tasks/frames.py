"""What the other stateless task types do to a DataFrame: those that make several rows of one, and user-defined ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from headgate.errors import InputError
from headgate.model.schema import Column, Schema
from headgate.model.task_type import IN, OUT, Inputs, TaskConfig
from headgate.tasks.arrow_task import Work, worked
from headgate.tasks.blobs import Download, Plot, Upload, Zip
from headgate.tasks.filing import check_plots, download, plot, upload, zipped
from headgate.tasks.functions import load_function
from headgate.tasks.guard import CARRIED, LETTER, Guard
from headgate.tasks.looking_up import annotate, query_table, version_of
from headgate.tasks.lookups import Annotate, BloomFilter, JoinTable, QueryTable
from headgate.tasks.membership import may_be_in
from headgate.tasks.metering import metered
from headgate.tasks.parsers import parse_senml, parse_xml
from headgate.tasks.parsing import ParseSenml, ParseXml
from headgate.tasks.python_function import python_work
from headgate.tasks.relational import Explode, Tokenise, Unpivot
from headgate.tasks.rowwise import quoted
from headgate.tasks.user_defined import Python, Sql

__all__ = ["ARROW", "FRAMES", "check_work", "names_bad_rows", "parsed_schema", "run_frames", "work_of"]

Frames = Mapping[str, DataFrame]


def _explode(options: Explode, frames: Frames, guard: Guard | None = None) -> DataFrame:
    del guard
    frame = frames["in"]
    others = [F.col(quoted(name)) for name in frame.columns if name.casefold() != options.column.casefold()]
    return frame.select(*others, F.explode(F.col(quoted(options.column))).alias(options.into or options.column))


def _tokenise(options: Tokenise, frames: Frames, guard: Guard | None = None) -> DataFrame:
    del guard
    frame = frames["in"]
    text = F.col(quoted(options.column))
    words = F.split(F.lower(text) if options.lower else text, options.pattern)
    others = [F.col(quoted(name)) for name in frame.columns if name.casefold() != options.into.casefold()]
    return frame.select(*others, F.explode(words).alias(options.into)).where(f"{quoted(options.into)} <> ''")


def _sql(options: Sql, frames: Frames, guard: Guard | None = None) -> DataFrame:
    del guard
    session = next(iter(frames.values())).sparkSession
    for port, frame in frames.items():
        frame.createOrReplaceTempView(port)
    return session.sql(options.query)


def _unpivot(options: Unpivot, frames: Frames, guard: Guard | None = None) -> DataFrame:
    del guard
    frame = frames["in"]
    gone = {name.casefold() for name in (*options.columns, options.field, options.value)}
    others = [F.col(quoted(name)) for name in frame.columns if name.casefold() not in gone]
    pairs = [F.struct(F.lit(n).alias("field"), F.col(quoted(n)).alias("value")) for n in options.columns]
    made = frame.select(*others, F.explode(F.array(*pairs)).alias("__pair"))
    kept = [F.col(quoted(name)) for name in made.columns if name != "__pair"]
    return made.select(*kept, F.col("__pair.field").alias(options.field), F.col("__pair.value").alias(options.value))


def _bloom_filter(options: BloomFilter, frames: Frames, guard: Guard | None = None) -> DataFrame:
    del guard
    frame = frames["in"]
    member = may_be_in(frame, options.column, version_of(options.ids), options.false_positives)
    if not options.nulls:
        return frame.where(member)
    blank = {name.casefold() for name in options.nulls}
    return frame.select(
        *(
            F.when(member, F.col(quoted(name))).alias(name) if name.casefold() in blank else F.col(quoted(name))
            for name in frame.columns
        )
    )


def _join_table(options: JoinTable, frames: Frames, guard: Guard | None = None) -> DataFrame:
    del guard
    frame = frames["in"]
    path, _, _ = version_of(options.path)
    reader = frame.sparkSession.read.format(options.format).schema(parsed_schema(options.columns))
    table = reader.option("header", options.header).load(path)
    left, right = frame.alias("l"), F.broadcast(table).alias("r")
    test = " and ".join(f"l.{quoted(name)} = r.{quoted(name)}" for name in options.on)
    joined = left.join(right, F.expr(test), options.kind)
    keys, taken = ({name.casefold() for name in names} for names in (options.on, frame.columns))
    columns = [F.col(f"l.{quoted(name)}") for name in frame.columns if name != CARRIED]
    for name in table.columns:
        if name.casefold() not in keys:
            alias = f"right_{name}" if name.casefold() in taken else name
            columns.append(F.col(f"r.{quoted(name)}").alias(alias))
    return joined.select(*columns, *([F.col(f"l.{CARRIED}")] if CARRIED in frame.columns else []))


ARROW: dict[type[TaskConfig], Callable[..., Work]] = {
    ParseSenml: parse_senml,
    ParseXml: parse_xml,
    Annotate: annotate,
    QueryTable: query_table,
    Upload: upload,
    Download: download,
    Zip: zipped,
    Plot: plot,
}
"""Tasks that work on Arrow batches: from the options to the work."""


def work_of(options: TaskConfig, schema: pa.Schema, guard: Guard) -> Work:
    """The work of a task on Arrow batches that makes rows of a schema; in a worker."""
    if isinstance(options, Python):
        function = load_function(options.function)
        return python_work(options.over, function, dict(options.options), schema, letters=guard.letters)
    return ARROW[type(options)](options)


def _arrow(options: TaskConfig, frames: Frames, guard: Guard | None = None) -> DataFrame:
    if len(frames) > 1:
        told = f"a python task runs over one stream of rows and has ports {', '.join(frames)}; join them before it"
        raise InputError("CANNOT_RUN", told)
    (frame,) = frames.values()
    minded = guard or Guard("")
    check_work(options)
    schema = _made_schema(options, frame.drop(CARRIED).schema)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return worked(work_of(options, target, minded), batches, target, minded)

    target = to_arrow_schema(schema, timezone="UTC")
    return frame.mapInArrow(metered(run), _with_hidden(schema, frame, minded))


def check_work(options: TaskConfig) -> None:
    """Raise :class:`InputError` where a task lacks what it needs: in the workers too, but nothing runs before this."""
    if isinstance(options, Python):
        load_function(options.function)
    elif isinstance(options, Annotate):
        version_of(options.path)
    elif isinstance(options, Plot):
        check_plots()


def _made_schema(options: TaskConfig, entering: StructType) -> StructType:
    """The columns that a task makes of others, as Spark has them."""
    if isinstance(options, Python):
        return entering if options.columns is None else parsed_schema(options.columns)
    rows = Schema(tuple(Column(field.name, field.dataType.simpleString()) for field in entering))
    made = options.outputs(Inputs({IN: [rows]}))[OUT]
    assert made is not None
    return _parsed_once(", ".join(f"{quoted(column.name)} {column.type}" for column in made.columns))


def _with_hidden(schema: StructType, frame: DataFrame, guard: Guard) -> StructType:
    """The columns that a task makes, those that go along with them, and that of letters."""
    if CARRIED in frame.columns:
        schema = StructType([*schema.fields, StructField(CARRIED, LongType())])
    if guard.letters:
        # A letter has nothing in the columns that the function makes.
        schema = StructType([StructField(field.name, field.dataType) for field in schema.fields])
        schema = schema.add(LETTER, StructType().add("record", "string").add("error", "string"))
    return schema


def names_bad_rows(options: TaskConfig) -> bool:
    """Whether a task itself tells the rows that it cannot stand, as letters."""
    return isinstance(options, Python) or type(options) in ARROW


def parsed_schema(columns: str) -> StructType:
    """A schema from columns as in SQL's CREATE TABLE, or from a single type for one column called ``value``."""
    found = StructType.fromDDL(columns)
    return found if isinstance(found, StructType) else StructType().add("value", found)


_parsed_once = lru_cache(maxsize=1_000)(parsed_schema)
"""Only Spark's process can read columns as SQL writes them, and asking it in every micro-batch would take too long."""


FRAMES: dict[type[TaskConfig], Callable[..., DataFrame]] = {
    Explode: _explode,
    Tokenise: _tokenise,
    Sql: _sql,
    Unpivot: _unpivot,
    BloomFilter: _bloom_filter,
    JoinTable: _join_table,
    **dict.fromkeys((*ARROW, Python), _arrow),
}
"""From a task type's options, its input frames by port and the guard of its function, if it has one, to its output."""


def run_frames(options: TaskConfig, frames: Frames, guard: Guard | None = None) -> DataFrame:
    """What a task makes of its input frames; code of a dataflow's author sees no columns but the dataflow's own."""
    if isinstance(options, Sql):
        frames = {port: frame.drop(*(n for n in frame.columns if n.startswith("__"))) for port, frame in frames.items()}
    return FRAMES[type(options)](options, frames, guard)
