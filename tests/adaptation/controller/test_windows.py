"""The window of an engine: rates, costs and machines as an observation has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headgate.adaptation.controller.pressure import pressure_of
from headgate.adaptation.controller.windows import EpochGoal, window_of
from headgate.adaptation.policy import Capabilities, Terms
from headgate.adaptation.window import Window
from headgate.model.cluster.alternate_cost import AlternateCost, Origin
from headgate.model.cluster.machine_observations import MachineObservations, MachineRow, MachineState
from headgate.model.cluster.observation import (
    FragmentObservation,
    Observation,
    SinkObservation,
    SourceObservation,
    TaskObservation,
)
from headgate.model.cluster.vm_class import HOURLY, Cloud
from tests.adaptation.controller.world import FLOW, PAGE, READ, SIGNATURES, SMOOTH
from tests.machines.fake_provider import LARGE, SMALL

CAN = Capabilities(("spark",), switchable=frozenset({SMOOTH}))
TERMS = Terms(FLOW, SIGNATURES, Cloud("here", (SMALL, LARGE), HOURLY), 60.0, 60, owners={"town": tuple(SIGNATURES)})


def seen(work_s: float = 6.0, **changes: Any) -> Observation:
    """600 rows came in a minute, of which 500 were taken, and half of them reached the sink."""
    machines = [
        MachineRow("small-1", "small", cores=1, speed=0.5, asked=0.0),
        MachineRow("large-2", "large", MachineState.STARTING, cores=4, asked=3_655.0, workers=0),
        MachineRow("small-3", "small", MachineState.RELEASED, cores=1, asked=0.0, gone=3_650.0, workers=0),
    ]
    return replace(
        Observation(
            3_660.0,
            60.0,
            (
                TaskObservation(READ, "read", "opaque", "opaque", ("town",), None, 500, 500),
                TaskObservation(SMOOTH, "smooth", "opaque", "best", ("town",), None, 500, 250, inputs=(READ,)),
            ),
            (SinkObservation(PAGE, "page", ("town",), 250, None, (SMOOTH,)),),
            (
                FragmentObservation(
                    "f", "source", (READ, SMOOTH), 30, 500, 100, 30.0, 3.0, 0.0, 24.0, 3.0, work_s=work_s
                ),
            ),
            MachineObservations.of(machines),
            (SourceObservation(READ, "read", ("town",), 500, 600.0, 100.0),),
            costs=(
                AlternateCost(SMOOTH, "best", 0.008, Origin.MEASURED, wait_s=0.004),
                AlternateCost(SMOOTH, "quick", 0.002, Origin.SCALED),
            ),
        ),
        **changes,
    )


def window(observation: Observation, terms: Terms = TERMS) -> Window:
    return window_of(terms, CAN, observation, EpochGoal(0.5, 2.0))


def test_rates_are_those_that_came_and_waiting_rows_stand_before_their_fragment() -> None:
    here = window(seen())
    places = {str(name): place for place, name in enumerate(here.shape.names)}
    assert here.external[places["read"]] == 10.0
    assert here.waiting[places["read"]] == 100.0
    assert here.waiting.sum() == 100.0
    assert here.shape.selectivity[places["smooth"], 0] == 0.5
    assert here.omega == pytest.approx(500 / 600)


def test_a_row_costs_what_its_fragment_needed_a_held_core_included() -> None:
    # 500 rows of 8 ms of work and 4 ms of waiting at half speed are 5 core-seconds; starting 30 epochs took 0.15.
    declared = 500 * (0.008 + 0.004 * 0.5)
    here = window(seen(work_s=2 * declared + 30 * 0.005))
    smooth = here.shape.place("smooth")
    assert here.shape.cost_s[smooth, 0] == pytest.approx(2 * 0.010)
    assert here.shape.cost_s[smooth, 1] == pytest.approx(2 * 0.002)
    assert pressure_of(here).demand == pytest.approx(10 * 2 * 0.010)
    assert pressure_of(here).backlog == pytest.approx(100 * 2 * 0.010)


def test_machines_that_work_or_start_are_there_with_what_is_left_of_their_paid_time() -> None:
    machines = window(seen()).machines
    assert machines.names == ("small-1", "large-2")
    assert machines.kind.tolist() == [0, 1]
    assert machines.speed.tolist() == [0.5, 1.0]
    assert machines.left_s.tolist() == [7_200.0 - 3_660.0, 3_600.0 - 5.0]
    assert machines.starts_s.tolist() == [0.0, 15.0]
    assert machines.cores.tolist() == [[1], [4]]


def test_usable_is_what_epochs_leave_of_machines_that_work() -> None:
    # One fragment of f = 0.2 s in epochs of 2 s, half a reference core, and one partition started in each.
    pressure = pressure_of(window(seen()))
    assert pressure.usable == pytest.approx(0.9 * 0.5 - 0.005 / 2)
    assert pressure.coming > 4 * 0.9


def test_what_is_not_known_is_what_was_taken() -> None:
    unknown = SourceObservation(READ, "read", ("town",), 500, None, None, unknown="it does not say")
    here = window(seen(sources=(unknown,)))
    assert here.external.max() == pytest.approx(500 / 60)
    assert np.isfinite(here.shape.cost_s).all()


def test_a_fragment_is_cut_where_its_partitions_can_be_set() -> None:
    (fragment,) = seen().fragments
    can = replace(CAN, kinds=frozenset({"set_partitions"}), resizable=frozenset({SMOOTH}))
    here = window_of(TERMS, can, seen(fragments=(replace(fragment, parts=1),)), EpochGoal(0.5, 2.0))
    assert here.sharing is not None
    stages = [(stage.tasks, stage.partitions) for stage in here.sharing.fragments[0].stages]
    assert stages == [(("read",), 1), (("smooth", "page"), 1)], "as it was read"
    cut = [replace(task, partitions=4) if task.task == SMOOTH else task for task in seen().tasks]
    here = window_of(TERMS, can, seen(fragments=(replace(fragment, parts=4),), tasks=tuple(cut)), EpochGoal(0.5, 2.0))
    assert here.sharing is not None
    stages = [(stage.tasks, stage.partitions) for stage in here.sharing.fragments[0].stages]
    assert stages == [(("read",), None), (("smooth", "page"), 4)]


def test_epochs_grow_with_what_each_takes_in_any_case() -> None:
    """30 epochs of 3 s in the driver: admission makes them 6 s long, so half of the power is left, and not nothing."""
    (fragment,) = seen().fragments
    slow = replace(fragment, planning_s=60.0, commit_s=30.0)
    pressure = pressure_of(window(seen(fragments=(slow,))))
    assert pressure.usable == pytest.approx(0.5 * 0.5 - 0.005 / 6.0)
