"""What every provider of machines keeps to; each is tried with these."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from headgate.errors import HeadgateError
from headgate.machines.provider import MachineState, Provider


def check_contract(made: Callable[[], Provider], vm_class: str, settle: Callable[[Provider], None]) -> None:
    """Acquire and release machines; ``made`` connects anew, and ``settle`` waits until nothing starts or drains."""
    provider = made()
    assert vm_class in {each.name for each in provider.classes()}
    first = provider.acquire(vm_class, "test/1")
    assert (first.state, first.key) == (MachineState.STARTING, "test/1")
    again = made().acquire(vm_class, "test/1")
    assert again.name == first.name, "the same key is the same machine, whoever asks"
    second = provider.acquire(vm_class, "test/2")
    assert second.name != first.name
    settle(provider)
    assert {machine.name: machine.state for machine in made().list()} == {
        first.name: MachineState.READY,
        second.name: MachineState.READY,
    }
    provider.release(first.name)
    with suppress(HeadgateError):  # it is released already, or gone by now
        made().release(first.name)
    settle(provider)
    (left,) = provider.list()
    assert left.name == second.name
    gone = provider.acquire(vm_class, "test/1")
    assert (gone.name, gone.state) == (first.name, MachineState.RELEASED), "a key is never used for a second machine"
    assert [machine.key for machine in provider.list(gone=True)] == ["test/1", "test/2"]
    with pytest.raises(HeadgateError):
        provider.release("none-1")
