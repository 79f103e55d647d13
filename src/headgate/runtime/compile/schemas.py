"""The columns of every stream as Spark sees them: each new task is tried on no rows.

A task that Spark does not accept is so refused, by name, before anything changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.errors import InputError
from headgate.model.names import Signature
from headgate.model.work import ChainWork, FrameWork, KeyedWork, SinkWork, SourceWork
from headgate.runtime.chains.jobs import ChainTask, registered_chain
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, alternate_key
from headgate.runtime.compile.query_plan import check_query_plan
from headgate.runtime.io.secret_options import used_options
from headgate.runtime.spark_internals.frames import arrow_schema, from_arrow
from headgate.runtime.spark_internals.internals import internals
from headgate.store.secrets import SECRETS
from headgate.tasks.frames import declared_schema, expressed, parsed_schema, run_frames
from headgate.tasks.keyed_base import KeyedConfig
from headgate.tasks.sql_text import quoted

__all__ = ["Schemas", "ddl"]


def ddl(schema: StructType) -> str:
    """A schema as SQL's CREATE TABLE has it."""
    return ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in schema.fields)


class Schemas:
    """Schemas by task and active alternate; each is worked out once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[tuple[Signature, str], StructType] = {}
        self._chains: dict[tuple[Signature, str], ChainTask] = {}
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
        key = (task.signature, alternate_key(task.alternate))
        if key not in self._known:
            self._known[key] = self._tried(plan, task)
        return self._known[key]

    def _tried(self, plan: CompiledPlan, task: CompiledTask) -> StructType:
        work = task.work
        if isinstance(work, SourceWork):
            return declared_schema(task.options)
        sides = self._entering(plan, task)
        try:
            if isinstance(work, SinkWork):
                with used_options(task) as options:
                    work.check(options, self._spark, [frame.columns for frame in sides.values()])
                return StructType()
            if isinstance(work, KeyedWork):
                work.check(task.options)
                return _with_result(cast(KeyedConfig, task.options), next(iter(sides.values())).schema)
            if isinstance(work, FrameWork):
                for query in work.queries(task.options):
                    check_query_plan(internals(self._spark).parsed_query(query), sides)
            if isinstance(work, ChainWork):
                return self._chained(work, task, [sides[name] for name in sorted(sides)])
            return run_frames(work, task.options, sides).schema
        except InputError as error:
            raise InputError(error.condition, f"task '{task.name}': {error.message}") from None
        except PySparkException as error:
            reason = SECRETS.hidden(" ".join(str(error).split()))[:300]
            raise InputError("TASK_REFUSED", f"task '{task.name}': Spark does not accept it: {reason}") from None

    def chain(self, plan: CompiledPlan, task: CompiledTask) -> ChainTask:
        """A window or a join, as workers know it."""
        key = (task.signature, alternate_key(task.alternate))
        if key not in self._chains:
            self._known.pop(key, None)
            self.of(plan, task)
        return self._chains[key]

    def names_of_sides(self, plan: CompiledPlan, task: CompiledTask) -> list[list[str]]:
        """The columns of each side of a window or a join."""
        sides: dict[int, list[str]] = {}
        for feed in task.feeds:
            if (feed.side or 0) not in sides:
                sides[feed.side or 0] = self.of(plan, plan.tasks[feed.source]).names
        return [names for _, names in sorted(sides.items())]

    def _chained(self, work: ChainWork, task: CompiledTask, sides: Sequence[DataFrame]) -> StructType:
        """Work out what a window or a join is given, and what it makes of it."""
        shaped = work.before(task.options, [frame.columns for frame in sides])
        given = [expressed(does, frame).schema for does, frame in zip(shaped, sides, strict=True)]
        columns = tuple(arrow_schema(schema).serialize().to_pybytes() for schema in given)
        known = ChainTask(task.alternate.type, task.alternate.config.text, columns)
        _, _, chain = registered_chain(known)
        self._chains[task.signature, alternate_key(task.alternate)] = known
        rows = from_arrow(chain.output)
        return rows if chain.after is None else expressed(chain.after, self._without_rows(rows)).schema

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
                message = f"task '{task.name}': the streams into it do not fit: {reason}"
                raise InputError("SCHEMA_DOES_NOT_FIT", message) from None
        return sides


def _with_result(options: KeyedConfig, schema: StructType) -> StructType:
    """The columns of a hosted task: those that come in, without some, and those that its result becomes."""
    gone = {name.casefold() for name in options.dropped()}
    fields = {field.name.casefold(): field for field in schema.fields if field.name.casefold() not in gone}
    for name, kind in options.added().items():
        fields[name.casefold()] = parsed_schema(f"{quoted(name)} {kind}").fields[0]
    return StructType(list(fields.values()))
