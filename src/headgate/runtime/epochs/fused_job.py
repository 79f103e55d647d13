"""A fragment's tasks as one Spark job, and the jobs that are kept from one epoch to the next.

Building, analysing, optimising and planning a job takes longer than running it over a few rows. A job that reads splits
is the same in every epoch, as long as what its fragment does, its guards and its resting tasks are. It is planned once
and run again, also under later plans that change nothing in its fragment.
Jobs with a shuffle, a stored frame or an expression that Spark decides anew for each query (the time, a random number)
are not kept: run again, they would give what they gave before.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame

from headgate.runtime.compile.fusion import Fusion
from headgate.runtime.epochs.commit import StagedEpoch, Target
from headgate.runtime.epochs.staging import run_staging
from headgate.runtime.observing.counting import RowCounts
from headgate.runtime.spark_internals.frames import can_run_again, observed_metrics

__all__ = ["FusedJob", "JobKey", "KeptJobs", "release"]

JobKey = tuple[tuple[object, ...], frozenset[str], frozenset[str], int, tuple[tuple[str, ...], ...]]
"""What the fragment does, resting tasks, guarded tasks, number of splits, the executors of each."""

MOST = 8
"""Jobs that are kept: of the current and of former plans, and of epochs with more or fewer splits."""


@dataclass(frozen=True, slots=True)
class FusedJob:
    """A job that stages all outputs of an epoch."""

    frame: DataFrame | None
    """``None`` if no task is left to run."""

    fusions: tuple[Fusion, ...]
    targets: tuple[Target, ...]
    ran: frozenset[str]

    def stage(self, folder: Path, ingested_us: int) -> StagedEpoch | None:
        """Run the job for an epoch."""
        if self.frame is None:
            return None
        files, counted, places = run_staging(self.frame, folder, ingested_us)
        return StagedEpoch(files, self.targets, counted, self.ran, self._row_counts, places)

    def _row_counts(self, rows: Mapping[int, int]) -> RowCounts:
        assert self.frame is not None
        metrics = observed_metrics(self.frame)
        counts: RowCounts = Counter()
        for fusion in self.fusions:
            counts.update(fusion.counted(rows, metrics))
        return counts

    def under(self, plan: int) -> FusedJob:
        """The same job for a plan in which the fragment does the same: its outputs carry that number."""
        return replace(self, targets=tuple(target._replace(snapshot=plan) for target in self.targets))

    def can_be_kept(self) -> bool:
        """Whether it gives the right rows for other epochs too."""
        if self.frame is None or not all(fusion.is_steady for fusion in self.fusions):
            return False
        return can_run_again(self.frame)

    def is_current(self) -> bool:
        """Whether its tasks still make the same expressions: some depend on files, such as models."""
        return all(fusion.makes_the_same() for fusion in self.fusions)

    def release(self) -> None:
        """Drop the frames that were stored for it."""
        release(self.fusions)


def release(fusions: Iterable[Fusion]) -> None:
    """Drop the frames that fusions have stored."""
    for fusion in fusions:
        for stored in fusion.stored:
            stored.unpersist()


class KeptJobs:
    """The jobs of a fragment that are kept, and which cannot be."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[JobKey, FusedJob | None] = OrderedDict()

    def job(self, key: JobKey, build: Callable[[], FusedJob]) -> FusedJob | None:
        """The job of a key; ``None`` if it cannot be kept."""
        if key in self._jobs:
            job = self._jobs[key]
            self._jobs.move_to_end(key)
            if job is None or job.is_current():
                return job
        built = build()
        if not built.can_be_kept():
            built.release()
            self._keep(key, None)
            return None
        self._keep(key, built)
        return built

    def _keep(self, key: JobKey, job: FusedJob | None) -> None:
        self._jobs[key] = job
        self._jobs.move_to_end(key)
        while len(self._jobs) > MOST:
            self._jobs.popitem(last=False)
