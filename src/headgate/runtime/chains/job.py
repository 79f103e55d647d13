"""The job of an epoch of chains: as many Spark tasks as ranges, each of which maps the epoch's files by itself.

No row passes through Spark's process. The frame of the job is planned once for a number of ranges; what an epoch does
its workers find in a file.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.model.chain_work import Chain, ChainWork
from headgate.runtime.chains.files import mapped
from headgate.runtime.chains.fold import FoldedPart, Folding, fold_part
from headgate.runtime.chains.merging import Merge, Merged, merged
from headgate.runtime.observing.job_tags import job_property
from headgate.runtime.spark_internals.worker import settle
from headgate.store.chain_entries import ChainKept
from headgate.tasks.batch import metered

__all__ = ["ChainJobs", "ChainTask", "FoldPlan", "chain_of"]

WORK = "headgate.chains"
"""The property of a job in which its workers find the file of what is to be done."""

RESULT = "result binary"


@dataclass(frozen=True, slots=True)
class ChainTask:
    """A stateful task, as workers know it."""

    type: str
    config: str
    """Its options, as JSON."""

    sides: tuple[bytes, ...]
    """The Arrow schema of each side of its kernel's rows."""


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """What an epoch does to the chain of a task."""

    task: ChainTask
    kept: ChainKept
    inputs: tuple[tuple[str, ...], ...]
    """The files of each side, in order of arrival."""


@dataclass(frozen=True, slots=True)
class _Epoch:
    number: int
    clock: int
    folder: str
    outputs: str
    plans: tuple[FoldPlan, ...]


@dataclass(frozen=True, slots=True)
class _Merging:
    folder: str
    merges: tuple[tuple[ChainTask, Merge], ...]


def chain_of(task: ChainTask) -> tuple[ChainWork, Any, Chain]:
    """The work of a task, its options and its chain."""
    return _started(task)


@lru_cache(maxsize=256)
def _started(task: ChainTask) -> tuple[ChainWork, Any, Chain]:
    from headgate.tasks.registry import default_registry

    kind = default_registry()[task.type]
    assert isinstance(kind.work, ChainWork)
    options = kind.config.model_validate(json.loads(task.config))
    return kind.work, options, kind.work.start(options, [pa.ipc.read_schema(pa.py_buffer(one)) for one in task.sides])


class ChainJobs:
    """Runs epochs and merges of chains on Spark."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self.folder = folder
        """Where the files of state are."""

        self._frames: dict[int, DataFrame] = {}

    def fold(self, epoch: int, clock: int, outputs: Path, plans: Sequence[FoldPlan]) -> list[list[FoldedPart]]:
        """Fold an epoch of some chains; returns what it makes of each range of each of them."""
        work = _Epoch(epoch, clock, str(self.folder), str(outputs), tuple(plans))
        made: list[list[FoldedPart]] = [[FoldedPart() for _ in plan.kept.parts] for plan in plans]
        for at, part, result in self._run(work, max(len(plan.kept.parts) for plan in plans), outputs / "work"):
            made[at][part] = result
        return made

    def merge(self, merges: Sequence[tuple[ChainTask, Merge]]) -> list[Merged]:
        """Merge files of some chains."""
        work = _Merging(str(self.folder), tuple(merges))
        return [one for _, _, one in self._run(work, len(merges), self.folder / "merging")]

    def frame(self, count: int) -> DataFrame:
        """The frame of jobs of so many tasks."""
        if count not in self._frames:
            self._frames[count] = self._spark.range(0, count, 1, count).mapInArrow(metered(_work), RESULT)
        return self._frames[count]

    def _run(self, work: object, count: int, file: Path) -> list[Any]:
        file.write_bytes(pickle.dumps(work))
        with job_property(self._spark, WORK, str(file)):
            rows = self.frame(count).collect()
        return [one for row in rows for one in pickle.loads(row["result"])]


def _work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do the part of a partition."""
    from pyspark import TaskContext

    for _ in batches:
        pass
    context = TaskContext.get()
    assert context is not None
    work = pickle.loads(Path(context.getLocalProperty(WORK) or "").read_bytes())
    at, attempt = context.partitionId(), context.taskAttemptId()
    done = _folded(work, at, attempt) if isinstance(work, _Epoch) else _merged(work, at, attempt)
    settle()
    yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(done)], pa.binary())], ["result"])


def _folded(work: _Epoch, at: int, attempt: int) -> list[tuple[int, int, FoldedPart]]:
    return [
        (number, at, fold_plan(plan, at, work, f"{work.number}-{number}-{at}-{attempt}"))
        for number, plan in enumerate(work.plans)
        if at < len(plan.kept.parts)
    ]


def fold_plan(plan: FoldPlan, at: int, epoch: _Epoch, prefix: str) -> FoldedPart:
    """Fold a range of a chain."""
    work, options, chain = chain_of(plan.task)
    folding = Folding(chain, work, options, plan.kept, epoch.number, epoch.clock)
    sides = [_rows(files, schema) for files, schema in zip(plan.inputs, plan.task.sides, strict=True)]
    return fold_part(folding, sides, plan.kept.parts[at], Path(epoch.folder), Path(epoch.outputs), prefix)


def _rows(files: Sequence[str], schema: bytes) -> pa.Table:
    """All rows of a side, with the columns that the kernel knows, in UTC."""
    wanted = pa.ipc.read_schema(pa.py_buffer(schema))
    return pa.concat_tables([wanted.empty_table(), *(_with(mapped(Path(file)), wanted) for file in files)])


def _with(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    by_name: Mapping[str, Any] = {name: rows.column(name) for name in rows.column_names}
    return pa.table([by_name[field.name].cast(field.type) for field in wanted], schema=wanted)


def _merged(work: _Merging, at: int, attempt: int) -> list[tuple[int, int, Merged]]:
    task, merge = work.merges[at]
    _, _, chain = chain_of(task)
    return [(at, at, merged(merge, chain, Path(work.folder), f"m-{at}-{attempt}"))]
