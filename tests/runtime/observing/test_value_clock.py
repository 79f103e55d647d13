"""The value of a task over an interval is that of the alternates which made its rows, for as long as each did."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.cluster.observation import Observation, TaskObservation
from headgate.model.names import TaskId
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.observing.records import EpochRecord
from headgate.runtime.observing.value_clock import ValueClock
from tests.compiled import plan_of
from tests.runtime.small import files, flow, memory

WAYS = [
    {"name": name, "type": "derive", "config": {"columns": {"w": f"v + {value}"}}, "value": value}
    for name, value in (("best", 1.0), ("quick", 0.4))
]
BEST = plan_of(flow("f", {"id": "src", **files(Path("in"))}, {"id": "score", "alternates": WAYS}, memory("f")))
(SCORE,) = [signature for signature, task in BEST.tasks.items() if task.running.task.id == TaskId("score")]
(FRAGMENT,) = BEST.fragments
QUICK = replace(
    BEST,
    number=2,
    tasks=BEST.tasks.updated(
        {SCORE: replace(BEST.tasks[SCORE], alternate=BEST.tasks[SCORE].running.task.alternates[1])}
    ),
)


def plans(number: int) -> CompiledPlan:
    return {1: BEST, 2: QUICK}[number]


def observed(ended: float, plan: CompiledPlan) -> Observation:
    value = 1.0 if plan is BEST else 0.4
    return Observation(ended, 10.0, (TaskObservation(SCORE, "s", "derive", "x", ("f",), None, 1, 1, value=value),))


def record(ended: float, snapshot: int) -> EpochRecord:
    return EpochRecord(FRAGMENT, 0, "tag", ended - 1, ended - 0.5, ended, 1, Counter(), {}, snapshot)


@given(st.lists(st.tuples(st.integers(1, 39), st.sampled_from([1, 2])), max_size=8, unique_by=lambda each: each[0]))
def test_values_add_up_over_intervals(epochs: list[tuple[int, int]]) -> None:
    """Second by second: the alternate of the last epoch that has ended, at first that of the first one."""
    clock, total, ordered = ValueClock(), 0.0, sorted(epochs)
    for begin in (0, 10, 20, 30):
        now = [record(float(ended), snapshot) for ended, snapshot in ordered if begin < ended <= begin + 10]
        total += 10 * clock.valued(observed(begin + 10.0, BEST), BEST, now[::-1], plans).tasks[0].value
    by_hand = 0.0
    for second in range(40):
        before = [snapshot for ended, snapshot in ordered if ended <= second]
        # Until an epoch has ended it is what the first interval with one shows, or what the plan says.
        first = next((s for e, s in ordered if e <= 10), 1)
        by_hand += {1: 1.0, 2: 0.4}[before[-1] if before else first]
    assert total == pytest.approx(by_hand)


def test_a_switch_counts_when_rows_show_it() -> None:
    clock = ValueClock()
    assert clock.valued(observed(10.0, BEST), BEST, [record(9.0, 1)], plans).tasks[0].value == 1.0
    assert clock.valued(observed(20.0, QUICK), QUICK, [], plans).tasks[0].value == 1.0, "no row was made by it"
    assert clock.valued(observed(30.0, QUICK), QUICK, [record(25.0, 2)], plans).tasks[0].value == pytest.approx(0.7)
