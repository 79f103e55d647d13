"""Guard rails: each removes what it must, says so, and leaves the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from headgate.adaptation.actions import (
    AcquireMachine,
    Action,
    AssignCores,
    ReleaseMachine,
    SetPartitions,
    SwitchAlternate,
)
from headgate.adaptation.controller.guards import Change, GuardRails, History, guarded
from headgate.adaptation.controller.windows import EpochGoal, window_of
from headgate.adaptation.joining import joined
from headgate.adaptation.policy import Decision, Prediction
from headgate.adaptation.window import Window
from headgate.errors import BadValue
from headgate.model.cluster.observation import Observation
from tests.adaptation.controller.test_controller import Scripted
from tests.adaptation.controller.world import SMOOTH, World

CHEAPER, BETTER = SwitchAlternate(SMOOTH, "quick"), SwitchAlternate(SMOOTH, "best")
SMALL, LARGE = AcquireMachine("small"), AcquireMachine("large")
FREE = GuardRails(cooldown_s=0.0, shrink_after_s=0.0, floor_s=0.0)


@pytest.fixture
def seen(tmp_path: Path) -> Window:
    """Three small machines for 50 rows a second of 10 ms, seen for a minute."""
    world = World(tmp_path, lambda _: Scripted(()), begins_with=3)
    observed: list[Observation] = []
    world.cluster.observations()
    for _ in range(12):
        world.now += 5.0
        observed += world.cluster.observations()
    known = world.cluster.terms(())
    assert known is not None
    return window_of(*known, joined(observed), EpochGoal(0.5, 2.0))


def kept(seen: Window, actions: Sequence[Action], rails: GuardRails = FREE, history: History | None = None) -> Decision:
    return guarded(Decision(tuple(actions)), seen, rails, history or History())


def why(decision: Decision) -> str:
    return " | ".join(each.reason for each in decision.reason.rejected)


def test_what_is_within_all_of_them_stays_as_it_was(seen: Window) -> None:
    decision = Decision((CHEAPER, LARGE, ReleaseMachine("small-1")))
    assert guarded(decision, seen, FREE, History()) is decision


def test_budget_and_number_count_what_is_there_and_what_comes(seen: Window) -> None:
    rails = replace(FREE, budget_per_h=Decimal("0.36"))
    assert kept(seen, [LARGE, LARGE], rails).actions == (LARGE,)  # 3 x 0.05 and 0.20
    assert "the budget is 0.36" in why(kept(seen, [LARGE, LARGE], rails))
    assert kept(seen, [SMALL] * 4, replace(FREE, machines_max=5)).actions == (SMALL, SMALL)


def test_the_last_machine_stays(seen: Window) -> None:
    names = [ReleaseMachine(name) for name in seen.machines.names]
    decision = kept(seen, names)
    assert len(decision.actions) == 2
    assert why(decision) == "the last machine that works stays"


def test_the_floor_is_what_was_needed_lately(seen: Window) -> None:
    rails = replace(FREE, floor_s=3_600.0)
    release = [ReleaseMachine("small-3")]
    now = seen.ended_s
    busy = History(demands=((now - 3_000, 2.4),))
    assert "(floor)" in why(kept(seen, release, rails, busy))
    assert kept(seen, release, rails, History(demands=((now - 4_000, 2.4),))).actions == tuple(release)


def test_machines_go_when_their_paid_time_ends(seen: Window) -> None:
    assert "paid for another" in why(kept(seen, [ReleaseMachine("small-3")], FREE, History(decides_every_s=1.0)))


def test_cool_down_counts_for_each_task_and_for_machines(seen: Window) -> None:
    rails = GuardRails(floor_s=0.0)
    now = seen.ended_s
    history = History(changes=(Change(now - 100, 1), Change(now - 30, 1, SMOOTH)))
    decision = kept(seen, [SMALL, CHEAPER, ReleaseMachine("small-1")], rails, history)
    assert decision.actions == (SMALL,)
    assert "(cooldown)" in why(decision)
    assert "(shrink_after)" in why(decision)


def test_so_many_changes_an_hour(seen: Window) -> None:
    now = seen.ended_s
    history = History(changes=tuple(Change(now - 3_000 + 200 * turn, 1) for turn in range(12)))
    assert "12 changes within an hour" in why(kept(seen, [SMALL], FREE, history))
    assert kept(seen, [CHEAPER], FREE, history).actions == (CHEAPER,)


def test_what_goes_to_and_fro_shrinks_no_more(seen: Window) -> None:
    now = seen.ended_s
    history = History(changes=tuple(Change(now - 1_500 + 300 * turn, (-1) ** turn) for turn in range(5)))
    decision = kept(seen, [ReleaseMachine("small-1"), SMALL], FREE, history)
    assert decision.actions == (SMALL,)
    assert "to and fro" in why(decision)
    later = replace(seen, ended_s=now + 4_000)
    assert kept(later, [ReleaseMachine("small-1")], FREE, history).actions != ()


def test_too_little_was_seen(seen: Window) -> None:
    assert seen.measured is not None
    few = tuple(replace(fragment, batches=4, batch_s=1.0) for fragment in seen.measured.fragments)
    decision = kept(replace(seen, measured=replace(seen.measured, fragments=few)), [SMALL, CHEAPER])
    assert decision.actions == ()
    assert "only 4 epochs" in why(decision)
    unknown = tuple(replace(source, rows_arrived=None) for source in seen.measured.sources)
    assert "not known what arrives" in why(
        kept(replace(seen, measured=replace(seen.measured, sources=unknown)), [SMALL])
    )


def test_a_class_that_was_refused_is_not_asked_for(seen: Window) -> None:
    history = History(refused={"small": seen.ended_s + 20})
    assert kept(seen, [SMALL, LARGE], FREE, history).actions == (LARGE,)


def test_lost_machines_are_replaced_in_the_cool_down_at_most_so_often(seen: Window) -> None:
    now = seen.ended_s
    lost = History(changes=(Change(now - 10, 1),), lost=((now - 5, "small"),))
    assert kept(seen, [SMALL, SMALL], GuardRails(), lost).actions == (SMALL,)
    again = replace(lost, replaced=tuple((now - 60.0 * turn, "small") for turn in range(3)))
    assert kept(seen, [SMALL], GuardRails(), again).actions == ()


def test_what_the_engine_cannot_do_and_what_waits_for_it_go(seen: Window) -> None:
    quick = replace(seen, active=seen.active.copy())
    quick.active[seen.shape.place("smooth")] = 1
    assert kept(quick, [AssignCores("a", "b", 1)]).actions == ()
    decision = kept(quick, [SMALL, BETTER], replace(FREE, machines_max=1))
    assert decision.actions == ()
    assert "needs machines that are not acquired" in why(decision)


@pytest.mark.parametrize("bad", [{"budget_per_h": Decimal(-1)}, {"machines_max": 0}, {"cooldown_s": -1.0}])
def test_limits_that_make_no_sense_are_named(bad: dict[str, object]) -> None:
    with pytest.raises(BadValue):
        GuardRails(**bad)  # type: ignore[arg-type]


def test_limits_survive_json() -> None:
    rails = GuardRails(Decimal("0.40"), 3)
    assert GuardRails.of(rails.document()) == rails


def test_partitions_for_fewer_machines_go_with_a_release_that_is_not_done(seen: Window) -> None:
    assert seen.sharing is not None
    (load,) = seen.sharing.fragments
    stages = tuple(replace(stage, partitions=3) for stage in load.stages)
    cut = replace(seen, sharing=replace(seen.sharing, fragments=(replace(load, stages=stages),)))
    names = [ReleaseMachine(name) for name in seen.machines.names]
    fewer, more = SetPartitions(SMOOTH, 2), SetPartitions(SMOOTH, 4)
    assert kept(cut, [fewer, names[0]]).actions == (fewer, names[0])
    refused = kept(cut, [fewer, *names])
    assert refused.actions == tuple(names[:2])
    assert "it is for fewer machines than stay" in why(refused)
    assert kept(cut, [more, *names]).actions == (more, *names[:2])
    assert kept(cut, [fewer]).actions == (fewer,)


def test_what_was_expected_of_a_decision_is_not_expected_of_a_part_of_it(seen: Window) -> None:
    """Ten machines would have cost more than the two that are left: that says nothing about the policy."""
    expected = Prediction(seen.ended_s, cost_per_h=2.15)
    whole = Decision((SMALL, LARGE), prediction=expected)
    assert guarded(whole, seen, FREE, History()).prediction == expected
    part = guarded(Decision((LARGE,) * 10, prediction=expected), seen, replace(FREE, machines_max=5), History())
    assert (part.actions, part.prediction) == ((LARGE, LARGE), None)
