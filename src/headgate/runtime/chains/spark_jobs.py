"""The work of chains as Spark jobs: as many tasks as ranges, each of which maps the epoch's files by itself.

No row passes through Spark's process. The frame of a job is planned once for a number of ranges; what an epoch does its
workers find in a file.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.runtime.chains.fold import FoldedPart
from headgate.runtime.chains.jobs import ChainEpoch, ChainJobs, ChainTask, fold_range, merge_one, registered_chain
from headgate.runtime.chains.merging import Merge, MergedFiles
from headgate.runtime.observing.job_tags import job_property
from headgate.runtime.spark_internals.worker import settle
from headgate.tasks.batch import metered

__all__ = ["SparkChainJobs"]

WORK = "headgate.chains"
"""The property of a job in which its workers find the file of what is to be done."""


@dataclass(frozen=True, slots=True)
class _Merges:
    folder: str
    merges: tuple[tuple[ChainTask, Merge], ...]


class SparkChainJobs(ChainJobs):
    """Folds and merges chains in Spark's workers."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(folder)
        self._spark = spark
        self._frames: dict[int, DataFrame] = {}

    def fold(self, epoch: ChainEpoch) -> list[list[FoldedPart]]:
        made = [[FoldedPart() for _ in plan.kept.parts] for plan in epoch.plans]
        for number, at, result in self._run(epoch, epoch.ranges, Path(epoch.outputs) / "work"):
            made[number][at] = result
        return made

    def merge(self, merges: Sequence[tuple[ChainTask, Merge]]) -> list[MergedFiles]:
        work = _Merges(str(self.folder), tuple(merges))
        return self._run(work, len(merges), self.folder / "merging")

    def _run(self, work: object, count: int, file: Path) -> list[Any]:
        file.write_bytes(pickle.dumps(work))
        if count not in self._frames:
            self._frames[count] = self._spark.range(0, count, 1, count).mapInArrow(metered(_work), "result binary")
        with job_property(self._spark, WORK, str(file)):
            rows = self._frames[count].collect()
        return [one for row in rows for one in pickle.loads(row["result"])]


def _work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do the part of a partition."""
    from pyspark import TaskContext

    for _ in batches:
        pass
    context = TaskContext.get()
    assert context is not None
    work = pickle.loads(Path(context.getLocalProperty(WORK) or "").read_bytes())
    at = context.partitionId()
    done: Sequence[object]
    if isinstance(work, ChainEpoch):
        done = fold_range(work, at, context.taskAttemptId(), registered_chain)
    else:
        task, merge = work.merges[at]
        done = [merge_one(Path(work.folder), task, merge, registered_chain)]
    settle()
    yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(done)], pa.binary())], ["result"])
