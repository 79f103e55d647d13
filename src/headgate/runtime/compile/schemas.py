"""The columns of every stream as Spark sees them, found by trying each new task on no rows.

This is also how a task that Spark will not accept is found before anything changes, and named.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.errors import InputError
from headgate.model.names import Signature
from headgate.model.task_type import Role, State
from headgate.runtime.compile.native import native
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask
from headgate.runtime.io.sinks import check_sink
from headgate.runtime.io.sources import source_schema
from headgate.tasks.frames import FRAMES, parsed_schema
from headgate.tasks.keyed import check_keyed
from headgate.tasks.rowwise import ROW_WISE, quoted
from headgate.tasks.sinks import WriteFiles
from headgate.tasks.stateful import KeyedConfig

__all__ = ["Schemas", "ddl"]


def ddl(schema: StructType) -> str:
    """A schema as SQL's CREATE TABLE has it."""
    return ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in schema.fields)


class Schemas:
    """Schemas by task and active alternate; each is worked out once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[tuple[Signature, str], StructType] = {}
        # Many tasks have inputs of the same columns, and a frame costs Spark more than trying a task on it.
        self._without_rows = lru_cache(maxsize=1_000)(lambda schema: spark.createDataFrame([], schema))

    def check(self, plan: CompiledPlan, tasks: Iterable[Signature]) -> None:
        """Work out the schemas of some tasks; raises :class:`InputError` naming one that Spark does not accept."""
        for signature in tasks:
            task = plan.tasks.get(signature)
            if task is not None:
                self.of(plan, task)

    def of(self, plan: CompiledPlan, task: CompiledTask) -> StructType:
        """The schema of a task's output."""
        key = (task.signature, f"{task.alternate.type} {task.alternate.config.text}")
        if key not in self._known:
            self._known[key] = self._tried(plan, task)
        return self._known[key]

    def _tried(self, plan: CompiledPlan, task: CompiledTask) -> StructType:
        if task.role is Role.SOURCE:
            return source_schema(task.options)
        sides = self._entering(plan, task)
        try:
            if task.role is Role.SINK:
                check_sink(task.options, self._spark)
                _check_text(task, sides.values())
                return StructType()
            if task.state is State.KEYED:
                return _with_result(task, next(iter(sides.values())).schema)
            if task.state is State.NATIVE:
                return native(task.options, list(sides.values())).schema
            row_wise = ROW_WISE.get(type(task.options))
            if row_wise is None:
                return FRAMES[type(task.options)](task.options, sides).schema
            frame = next(iter(sides.values()))
            does = row_wise(task.options, frame.columns)
            if does.condition is not None:
                frame = frame.where(does.condition)
            if does.row is not None:
                frame = frame.selectExpr(f"{does.row} as row").select("row.*")
            elif does.columns is not None:
                frame = frame.selectExpr(*(f"{expression} as {quoted(name)}" for name, expression in does.columns))
            return frame.schema
        except InputError as error:
            raise InputError(error.condition, f"task '{task.name}': {error.message}") from None
        except PySparkException as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError("TASK_REFUSED", f"task '{task.name}': Spark does not accept it: {reason}") from None

    def _entering(self, plan: CompiledPlan, task: CompiledTask) -> dict[str, DataFrame]:
        """A frame without rows for each port, or for each side where they join."""
        sides: dict[str, DataFrame] = {}
        for feed in task.feeds:
            if feed.feedback:
                continue
            name = feed.target_port if feed.side is None else f"{feed.target_port}.{feed.side}"
            frame = self._without_rows(self.of(plan, plan.tasks[feed.source]))
            try:
                if feed.where is not None:
                    frame = frame.where(feed.where)
                sides[name] = frame if name not in sides else sides[name].unionByName(frame)
            except PySparkException as error:
                reason = " ".join(str(error).split())[:300]
                told = f"task '{task.name}': the streams into it do not fit: {reason}"
                raise InputError("SCHEMA_DOES_NOT_FIT", told) from None
        return sides


def _check_text(task: CompiledTask, sides: Iterable[DataFrame]) -> None:
    """Raise where a sink of plain lines gets rows of several columns."""
    if isinstance(task.options, WriteFiles) and task.options.format == "text":
        for frame in sides:
            if len(frame.columns) != 1:
                told = f"format text writes the only column, and rows have {len(frame.columns)}; select one before it"
                raise InputError("SCHEMA_DOES_NOT_FIT", told)


def _with_result(task: CompiledTask, schema: StructType) -> StructType:
    """The columns of a hosted task: those that come in, without some, and those that its result becomes."""
    assert isinstance(task.options, KeyedConfig)
    check_keyed(task.options)
    gone = {name.casefold() for name in task.options.dropped()}
    fields = {field.name.casefold(): field for field in schema.fields if field.name.casefold() not in gone}
    for name, kind in task.options.added().items():
        fields[name.casefold()] = parsed_schema(f"{quoted(name)} {kind}").fields[0]
    return StructType(list(fields.values()))
