"""Placed partitions: how long tasks wait for the executor that they prefer, and which of them ran elsewhere.

Spark takes a place for a preference. It gives it up when the wait is over, or when a place dies; work is done then all
the same, and counted as misplaced. The wait is never infinite: tasks that wait for a place that has died would wait
without end, while another place of the same job lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headgate.runtime.compile.plan import CompiledPlan, Kind
from headgate.runtime.epochs.commit import StagedEpoch
from headgate.runtime.spark_internals.protocol import Places

__all__ = ["ExecutorsOf", "wait_s", "with_misplaced"]

ExecutorsOf = Callable[[Sequence[str]], Places]
"""The executors on each of some machines."""

PATIENT_S, HASTY_S = 10.0, 0.5
"""Longer than the longest queue before an executor; and what Spark's own stateful operators can stand, which prefer an
executor too and would wait for one that has died."""


def wait_s(plan: CompiledPlan | None) -> float:
    """How long tasks of a plan wait for their place, or those that have none. The wait is one for all of Spark."""
    if plan is None or any(fragment.kind is Kind.KEYED for fragment in plan.fragments.values()):
        return HASTY_S
    return PATIENT_S


def with_misplaced(staged: StagedEpoch | None, places: Places) -> StagedEpoch | None:
    """What was staged, with how many partitions ran elsewhere than they were placed."""
    if staged is None or not places:
        return staged
    wanted = [{executor.id for executor in executors} for executors in places]
    return replace(staged, misplaced=sum(ran not in wanted[number] for number, ran in staged.places.items()))
