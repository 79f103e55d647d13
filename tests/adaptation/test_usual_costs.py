"""What rows usually cost: first epochs on new workers, with another alternate or another cut do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from headgate.adaptation.joining import joined
from headgate.model.cluster.alternate_cost import AlternateCost, Origin
from headgate.model.cluster.machine_observations import MachineObservations, MachineRow
from headgate.model.cluster.observation import FragmentObservation, Observation, TaskObservation
from headgate.model.names import Signature

READ, SCORE = Signature("read"), Signature("score")
COSTS = {"best": 0.020, "quick": 0.008}


def interval(
    number: int,
    row_s: float,
    *,
    batches: int = 2,
    rows: int = 100,
    way: str = "best",
    cut: int | None = None,
    machines: int = 1,
    driver_s: float = 0.1,
) -> Observation:
    """Five seconds in which rows took so long each."""
    here = [MachineRow(f"m{place}", cores=2) for place in range(machines)]
    ran = rows if batches else 0
    return Observation(
        5.0 * number,
        5.0,
        (
            TaskObservation(READ, "read", "read_files", "read_files", ("f",), None, ran, ran),
            TaskObservation(SCORE, "score", "python", way, ("f",), cut, ran, ran, inputs=(READ,)),
        ),
        (),
        (
            FragmentObservation(
                "s",
                "source",
                (READ, SCORE),
                batches,
                ran,
                0,
                4.0,
                driver_s * batches,
                0.0,
                3.0,
                0.0,
                work_s=ran * row_s,
            ),
        ),
        MachineObservations.of(here),
        costs=tuple(AlternateCost(SCORE, name, cost, Origin.DECLARED) for name, cost in COSTS.items()),
    )


def usual(intervals: Sequence[Observation], before: Sequence[Observation] = ()) -> Any:
    return joined(intervals, before).fragments[0]


def test_first_epochs_on_new_workers_do_not_count() -> None:
    calm = [interval(n, 0.021) for n in range(3)]
    cold = interval(3, 0.5, rows=900, machines=4, driver_s=2.0)
    part = usual([*calm, cold])
    assert part.work_s_per_row == pytest.approx(0.021)
    assert part.fixed_s == pytest.approx(0.1)
    assert part.rows_in == 1_200, "counts stay what they are"


def test_an_epoch_that_was_under_way_and_the_first_after_it_are_both_new() -> None:
    calm = [interval(n, 0.021) for n in range(3)]
    slow = [interval(4, 0.1, batches=1, machines=2), interval(5, 0.3, batches=1, machines=2)]
    changed = interval(3, 0.0, batches=0, machines=2)
    after = [interval(n, 0.03, machines=2) for n in range(6, 9)]
    assert usual([changed, *slow], calm).work_s_per_row == pytest.approx(0.021)
    assert usual([changed, *slow, *after], calm).work_s_per_row == pytest.approx(0.03)


def test_epochs_that_ended_before_a_change_do_not_follow_it() -> None:
    calm = [interval(n, 0.021) for n in range(3)]
    changed = interval(3, 0.021, batches=5, cut=4)
    cold = interval(4, 0.4, batches=1, cut=4)
    assert usual([*calm, changed, cold]).work_s_per_row == pytest.approx(0.021)


def test_rows_of_another_alternate_count_by_what_they_took_over_what_is_known() -> None:
    """Half as long again as is known, whichever alternate: so the one of now takes 12 ms and not 30."""
    before = [interval(n, 0.030) for n in range(4)]
    switched = interval(4, 0.030, way="quick")
    assert usual([*before, switched]).work_s_per_row == pytest.approx(1.5 * COSTS["quick"])


def test_while_nothing_has_settled_it_is_the_least_that_was_seen() -> None:
    was = interval(0, 0.0, batches=0)
    cold = [interval(1, 0.3, batches=1, machines=2), interval(2, 0.05, batches=1, machines=3, driver_s=0.4)]
    part = usual([was, *cold])
    assert part.work_s_per_row == pytest.approx(0.05)
    assert part.fixed_s == pytest.approx(0.1)


def test_what_really_costs_more_is_known_after_some_intervals() -> None:
    calm, dear = [interval(n, 0.02) for n in range(6)], [interval(n, 0.06) for n in range(6, 10)]
    assert usual(dear, calm).work_s_per_row == pytest.approx(0.06)


def test_nothing_is_known_of_a_fragment_without_epochs() -> None:
    part = usual([replace(interval(0, 0.0, batches=0), ended=5.0)])
    assert (part.work_s_per_row, part.fixed_s) == (None, None)
