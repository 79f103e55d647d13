"""The record of acquisitions survives whatever kills who writes it, and costs add up."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headgate.machines.acquisitions import Acquisitions, as_dict, vm_class_of
from headgate.machines.processes import Process
from headgate.machines.provider import AcquiredMachine, MachineState, machine_class
from headgate.model.cluster.vm_class import VmClass

SMALL = machine_class("small", 1, 2**30, Decimal("0.36"), core_power=0.5, boot_s=3.0)


def test_what_became_of_machines(tmp_path: Path) -> None:
    record = Acquisitions(tmp_path / "a.jsonl")
    record.acquired("small-1", SMALL, "127.0.1.1", 100.0)
    record.started("small-1", Process(7, 8, "boot"), 100.5)
    record.acquired("small-2", SMALL, "127.0.1.2", 101.0)
    record.became("small-1", MachineState.READY, 104.0)
    record.became("small-1", MachineState.DRAINING, 110.0)
    one, two = Acquisitions(record.path).machines().values()
    assert (one.state, one.startup_s, one.gone_at) == (MachineState.DRAINING, 4.0, None)
    assert (two.state, two.startup_s) == (MachineState.STARTING, None)
    assert record.processes() == {"small-1": Process(7, 8, "boot")}
    assert record.changed_at("small-1") == 110.0
    record.became("small-1", MachineState.RELEASED, 120.0)
    assert record.machines()["small-1"].billed_s(1_000.0) == 20.0


def test_half_a_line_of_one_that_was_killed_as_it_wrote_hides_nothing_that_follows(tmp_path: Path) -> None:
    record = Acquisitions(tmp_path / "a.jsonl")
    record.acquired("small-1", SMALL, "h", 1.0)
    with record.path.open("ab") as file:
        file.write(b'{"event": "ready", "mach')
    record.acquired("small-2", SMALL, "h", 2.0)
    assert list(record.machines()) == ["small-1", "small-2"]
    assert record.machines()["small-1"].state is MachineState.STARTING


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.sampled_from([1, 60, 3_600]))
def test_costs_are_the_begun_increments(acquired_at: float, lasted_s: float, increment_s: int) -> None:
    machine = AcquiredMachine("m", SMALL, "h", MachineState.LOST, acquired_at, None, acquired_at + lasted_s)
    cost = machine.cost(2e6, increment_s)
    exact = Decimal(machine.billed_s(2e6)) * SMALL.price_per_h / 3_600
    assert exact - Decimal("1e-9") <= cost < exact + SMALL.price_per_h * increment_s / 3_600 + Decimal("1e-9")


@given(
    st.builds(
        machine_class,
        st.text(min_size=1, max_size=5),
        st.integers(1, 99),
        st.integers(1, 2**50),
        st.decimals("0.0001", 1000, allow_nan=False, allow_infinity=False, places=4),
        st.floats(0.01, 10),
        st.floats(0, 1e4),
    )
)
def test_vm_classes_are_read_back_as_they_were(vm_class: VmClass) -> None:
    assert vm_class_of(as_dict(vm_class)) == vm_class
    with tempfile.TemporaryDirectory() as folder:
        record = Acquisitions(Path(folder) / "a.jsonl")
        record.acquired("m", vm_class, "h", 1.5)
        assert record.machines()["m"].vm_class == vm_class
