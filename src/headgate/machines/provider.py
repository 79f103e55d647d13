"""The protocol that acquires and releases machines, on clouds and on this machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from headgate.model.cluster.machine_observations import GONE, MachineState
from headgate.model.cluster.vm_class import VmClass

__all__ = ["AcquiredMachine", "MachineState", "Provider", "machine_class"]


LOOPBACK_MBIT_PER_S = 10_000.0
"""Between machines that are processes of one machine."""


def machine_class(
    name: str, cores: int, memory_bytes: int, price_per_h: Decimal, core_power: float = 1.0, boot_s: float = 0.0
) -> VmClass:
    """A VM class of local machines: only cores, memory, price and speed differ."""
    return VmClass(name, cores, core_power, LOOPBACK_MBIT_PER_S, price_per_h, boot_s, memory_bytes=memory_bytes)


@dataclass(frozen=True, slots=True)
class AcquiredMachine:
    """A machine that was acquired, from then until long after it is gone; times are seconds since 1970."""

    name: str
    vm_class: VmClass
    host: str
    """Where its workers say that they are."""

    state: MachineState
    acquired_at: float
    ready_at: float | None = None
    gone_at: float | None = None
    key: str | None = None
    """What whoever asked for it calls it: asked for again with the same key, it is the same machine."""

    @property
    def is_gone(self) -> bool:
        return self.state in GONE

    @property
    def startup_s(self) -> float | None:
        """From asking for it until it took work; none if it never did."""
        return None if self.ready_at is None else self.ready_at - self.acquired_at

    def billed_s(self, now: float) -> float:
        """For how long it is paid: from when it was asked for until it is gone."""
        return max(0.0, (now if self.gone_at is None else self.gone_at) - self.acquired_at)

    def cost(self, now: float, increment_s: int = 1) -> Decimal:
        """What it has cost so far, where every begun increment counts in full (3,600 where hours are billed).

        >>> small = machine_class("small", 1, 2**30, Decimal("0.36"))
        >>> AcquiredMachine("small-1", small, "h", MachineState.READY, 0.0).cost(99.5), small.price_per_h / 36
        (Decimal('0.01'), Decimal('0.01'))
        """
        seconds = math.ceil(self.billed_s(now) / increment_s) * increment_s
        return self.vm_class.price_per_h * seconds / 3_600


class Provider(Protocol):
    """Gives machines and takes them back."""

    def classes(self) -> tuple[VmClass, ...]:
        """The available VM classes."""

    def acquire(self, vm_class: str, key: str | None = None) -> AcquiredMachine:
        """Request a machine; returns at once, and :meth:`list` shows when it is ready.

        With a key that was used before, whatever became of that request, it is the machine of that request.
        """

    def release(self, machine: str) -> None:
        """Release a machine after its current work; returns at once, and :meth:`list` shows when it is gone.

        One that is being released stays so.
        """

    def list(self, *, gone: bool = False) -> tuple[AcquiredMachine, ...]:
        """The machines that there are, in the order in which they were acquired; with ``gone`` all there ever were."""
