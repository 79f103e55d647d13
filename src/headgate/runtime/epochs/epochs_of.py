"""What runs the epochs of a fragment, put together from the parts of an engine."""

from __future__ import annotations

from collections.abc import Callable

from headgate.runtime.compile.plan import Fragment
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.epoch import Epochs
from headgate.runtime.epochs.fused_jobs import FusedJobs
from headgate.runtime.isolation.failed_rows import FailedRows
from headgate.runtime.isolation.quarantine import Quarantine
from headgate.runtime.isolation.reasons import ReasonFinder, Reasons

__all__ = ["epochs_of"]


def epochs_of(fragment: Fragment, context: FragmentContext, stopping: Callable[[], bool]) -> Epochs:
    """The epochs of a fragment; ``stopping`` says whether none is to begin any more."""
    quarantine, reasons, where = Quarantine(), Reasons(), context.executors_of
    finder = ReasonFinder(context.spark, context.schemas, context.background.offer, reasons)
    return Epochs(
        fragment,
        FusedJobs(context.spark, fragment.id, context.schemas, context.time_budget_s, context.counting, where),
        FailedRows(fragment.id, quarantine, reasons, finder.explain),
        quarantine,
        context.background,
        context.profiler,
        context.exchange.head,
        context.state.path / "staging" / fragment.id,
        context.time_budget_s,
        context.spark.sparkContext.cancelJobsWithTag,
        stopping,
        tails=context.tails,
    )
