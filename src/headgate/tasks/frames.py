"""What the other stateless task types do to a DataFrame: those that make several rows of one, and user-defined ones."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from headgate.errors import InputError
from headgate.model.task_type import TaskConfig
from headgate.tasks.guard import CARRIED, LETTER, Guard, guarded
from headgate.tasks.metering import metered
from headgate.tasks.relational import Explode, Tokenise
from headgate.tasks.rowwise import quoted
from headgate.tasks.user_defined import Python, Sql

__all__ = ["FRAMES", "load_function", "parsed_schema", "run_frames"]

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


def _python(options: Python, frames: Frames, guard: Guard | None = None) -> DataFrame:
    if len(frames) > 1:
        told = f"a python task runs over one stream of rows and has ports {', '.join(frames)}; join them before it"
        raise InputError("CANNOT_RUN", told)
    (frame,) = frames.values()
    own = frame.drop(CARRIED)
    schema = own.schema if options.columns is None else parsed_schema(options.columns)
    path, keywords, over = options.function, dict(options.options), options.over
    load_function(path)  # here too, so that one which is not there is told of before it runs
    minded = guard or Guard("")

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return guarded(over, load_function(path), keywords, batches, target, minded)

    target = to_arrow_schema(schema, timezone="UTC")
    if CARRIED in frame.columns:
        schema = StructType([*schema.fields, StructField(CARRIED, LongType())])
    if minded.letters:
        # A letter has nothing in the columns that the function makes.
        schema = StructType([StructField(field.name, field.dataType) for field in schema.fields])
        schema = schema.add(LETTER, StructType().add("record", "string").add("error", "string"))
    return frame.mapInArrow(metered(run), schema)


def parsed_schema(columns: str) -> StructType:
    """A schema from columns as in SQL's CREATE TABLE, or from a single type for one column called ``value``."""
    found = StructType.fromDDL(columns)
    return found if isinstance(found, StructType) else StructType().add("value", found)


def load_function(path: str) -> Callable[..., Any]:
    """The function that an import path names, ``package.module.function`` or ``package.module:function``."""
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError("NO_SUCH_FUNCTION", f"cannot load function '{path}': {error}") from None
    if not callable(found):
        raise InputError("NO_SUCH_FUNCTION", f"'{path}' is not a function")
    return found  # type: ignore[no-any-return]


FRAMES: dict[type[TaskConfig], Callable[..., DataFrame]] = {
    Explode: _explode,
    Tokenise: _tokenise,
    Sql: _sql,
    Python: _python,
}
"""From a task type's options, its input frames by port and the guard of its function, if it has one, to its output."""


def run_frames(options: TaskConfig, frames: Frames, guard: Guard | None = None) -> DataFrame:
    """What a task makes of its input frames; code of a dataflow's author sees no columns but the dataflow's own."""
    if isinstance(options, Sql):
        frames = {port: frame.drop(*(n for n in frame.columns if n.startswith("__"))) for port, frame in frames.items()}
    return FRAMES[type(options)](options, frames, guard)
