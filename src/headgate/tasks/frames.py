"""Running the work of a stateless task on Spark DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from headgate.errors import InputError
from headgate.model.schema import Column, Schema
from headgate.model.task_type import IN, OUT, Inputs, TaskConfig
from headgate.model.work import BatchTarget, BatchWork, FrameWork, RowExpression, RowWise, Work
from headgate.tasks.batch import metered, run_batches
from headgate.tasks.row_errors import CARRIED, LETTER, Guard
from headgate.tasks.sql_text import quoted

__all__ = ["declared_schema", "parsed_schema", "run_frames"]

Frames = Mapping[str, DataFrame]


def run_frames(work: Work, options: TaskConfig, frames: Frames, guard: Guard | None = None) -> DataFrame:
    """The output of a stateless task, over its input frames by port."""
    if isinstance(work, RowExpression):
        frame = next(iter(frames.values()))
        return expressed(work.sql(options, frame.columns), frame)
    if isinstance(work, BatchWork):
        return _run_batches(work, options, frames, guard or Guard(""))
    assert isinstance(work, FrameWork)
    return work.run(options, frames if work.carries else _visible(frames))  # type: ignore[no-any-return]


def expressed(does: RowWise, frame: DataFrame) -> DataFrame:
    """The rows that expressions make of those of a frame."""
    if does.condition is not None:
        frame = frame.where(does.condition)
    if does.row is not None:
        return frame.selectExpr(f"{does.row} as row").select("row.*")
    if does.columns is None:
        return frame
    return frame.selectExpr(*(f"{expression} as {quoted(name)}" for name, expression in does.columns))


def _visible(frames: Frames) -> Frames:
    """Frames without the columns that only the engine knows."""
    return {port: frame.drop(*(n for n in frame.columns if n.startswith("__"))) for port, frame in frames.items()}


def _run_batches(work: BatchWork, options: TaskConfig, frames: Frames, guard: Guard) -> DataFrame:
    if len(frames) > 1:
        message = f"a task over batches takes one stream of rows and has ports {', '.join(frames)}; join them before it"
        raise InputError("CANNOT_RUN", message)
    (frame,) = frames.values()
    work.check(options)
    schema = _output_schema(options, frame.drop(CARRIED).schema)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run_batches(work.start(options, BatchTarget(target, guard.letters)), batches, target, guard)

    target = to_arrow_schema(schema, timezone="UTC")
    return frame.mapInArrow(metered(run), _with_hidden(schema, frame, guard))


def _output_schema(options: TaskConfig, entering: StructType) -> StructType:
    """The columns that a task makes of others, as Spark has them."""
    rows = Schema(tuple(Column(field.name, field.dataType.simpleString()) for field in entering))
    made = options.outputs(Inputs({IN: [rows]}))[OUT]
    if made is None or any(column.type is None for column in made.columns):
        message = "the types of its columns are not known; declare them in the outputs of its options"
        raise InputError("SCHEMA_UNKNOWN", message)
    return entering if made == rows else _parsed_once(_ddl(made))


def declared_schema(options: TaskConfig) -> StructType:
    """The columns of a source, from its options alone."""
    schema = options.outputs(Inputs({}))[OUT]
    if schema is None:
        raise InputError("SCHEMA_UNKNOWN", "a source must declare its columns in the outputs of its options")
    return parsed_schema(_ddl(schema))


def _ddl(schema: Schema) -> str:
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in schema.columns)


def _with_hidden(schema: StructType, frame: DataFrame, guard: Guard) -> StructType:
    """The columns that a task makes, those that go along with them, and that of letters."""
    if CARRIED in frame.columns:
        schema = StructType([*schema.fields, StructField(CARRIED, LongType())])
    if guard.letters:
        # A letter has nothing in the columns that the function makes.
        schema = StructType([StructField(field.name, field.dataType) for field in schema.fields])
        schema = schema.add(LETTER, StructType().add("record", "string").add("error", "string"))
    return schema


def parsed_schema(columns: str) -> StructType:
    """A schema from columns as in SQL's CREATE TABLE, or from a single type for one column called ``value``."""
    kind = StructType.fromDDL(columns)
    return kind if isinstance(kind, StructType) else StructType().add("value", kind)


_parsed_once = lru_cache(maxsize=1_000)(parsed_schema)
"""Only Spark's process can read columns as SQL writes them, and asking it in every micro-batch would take too long."""
