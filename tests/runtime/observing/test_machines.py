"""Machines of a provider and executors on hosts become columns; nothing is lost between."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from headgate.machines.provider import AcquiredMachine, MachineState, machine_class
from headgate.runtime.observing.machines import ExecutorLoad, machine_columns

LARGE = machine_class("large", 4, 2**30, Decimal("0.2"))
MACHINE = AcquiredMachine("large-1", LARGE, "h1", MachineState.READY, 10.0, 17.0)


def test_executors_of_a_machine_are_one_row_and_count_by_their_cores() -> None:
    loads = [ExecutorLoad("1", "h1", 1, 1.0, 0.5), ExecutorLoad("2", "h1", 3, 0.2, None)]
    (row,) = machine_columns(loads, [MACHINE], 0.0)
    assert (row.name, row.vm_class, row.cores, row.workers, row.works) == ("large-1", "large", 4, 2, True)
    assert row.busy == pytest.approx(0.4)
    assert row.speed == 0.5, "only what was probed counts"
    assert (row.asked, row.ready, row.gone, row.price_per_h) == (10.0, 17.0, None, Decimal("0.2"))


def test_a_machine_without_a_worker_is_there_and_does_not_work() -> None:
    starting = replace(MACHINE, name="large-2", host="h2", state=MachineState.STARTING, ready_at=None)
    ready, new = machine_columns([], [MACHINE, starting], 0.0)
    assert (ready.works, ready.busy, ready.cores, ready.workers) == (False, None, 4, 0)
    assert (new.works, new.state, new.ready) == (False, MachineState.STARTING, None)


def test_machines_that_are_gone_are_shown_once_more_and_their_hosts_may_come_back() -> None:
    lost = replace(MACHINE, state=MachineState.LOST, gone_at=50.0)
    again = replace(MACHINE, name="large-9")
    load = ExecutorLoad("7", "h1", 4, 0.5, 1.0)
    old, new = machine_columns([load], [lost, again], 49.0)
    assert (old.gone, old.works, old.workers) == (50.0, False, 0)
    assert (new.name, new.workers) == ("large-9", 1)
    assert [row.name for row in machine_columns([load], [lost, again], 51.0)] == ["large-9"]


def test_hosts_that_no_provider_knows_cost_what_is_said() -> None:
    (row,) = machine_columns([ExecutorLoad("driver", "here", 2, 0.1, 1.1)], [], 0.0, Decimal("0.3"))
    assert (row.name, row.vm_class, row.price_per_h, row.asked) == ("here", None, Decimal("0.3"), None)
