"""Machines in an interval, as columns: thousands of them are looked at after every interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import StrEnum

import numpy as np

from headgate.errors import BadValue
from headgate.model.arrays import Floats

__all__ = ["GONE", "MachineObservations", "MachineRow", "MachineState"]


class MachineState(StrEnum):
    """The state of a requested machine."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    """It ends what it is doing and takes nothing new."""

    RELEASED = "released"
    LOST = "lost"
    """It ended by itself."""


GONE = frozenset({MachineState.RELEASED, MachineState.LOST})


@dataclass(frozen=True, slots=True)
class MachineRow:
    """One machine; times are on the clock of the observation, and ``None`` is unknown or not yet."""

    name: str
    vm_class: str | None = None
    state: MachineState = MachineState.READY
    cores: int = 1
    speed: float | None = None
    """One of its cores relative to the reference core (pi(t) of the papers), as measured; none until it was."""

    busy: float | None = None
    """Share of its cores' time in which they were at work, from 0 to 1; none without a worker."""

    asked: float | None = None
    """Since when it is paid for."""

    ready: float | None = None
    gone: float | None = None
    price_per_h: Decimal | None = None
    key: str | None = None
    """With what its acquisition was asked for, so that asking again gets the same machine."""

    pool: str = "default"
    """Which fragments share its cores."""

    workers: int = 1
    """Executors on it. A machine without one is there, and not ready."""

    @property
    def is_gone(self) -> bool:
        return self.state in GONE

    @property
    def works(self) -> bool:
        """Whether it takes tasks now."""
        return self.state is MachineState.READY and self.workers > 0


@dataclass(frozen=True, slots=True)
class MachineObservations:
    """The columns of :class:`MachineRow`, equally long. A column left out has its default in every row.

    >>> two = MachineObservations(("a", "b"), cores=(2, 4), speed=(1.0, None))
    >>> two.numbers("speed").tolist(), [row.cores for row in two]
    ([1.0, nan], [2, 4])
    """

    name: tuple[str, ...] = ()
    vm_class: tuple[str | None, ...] = ()
    state: tuple[MachineState, ...] = ()
    cores: tuple[int, ...] = ()
    speed: tuple[float | None, ...] = ()
    busy: tuple[float | None, ...] = ()
    asked: tuple[float | None, ...] = ()
    ready: tuple[float | None, ...] = ()
    gone: tuple[float | None, ...] = ()
    price_per_h: tuple[Decimal | None, ...] = ()
    key: tuple[str | None, ...] = ()
    pool: tuple[str, ...] = ()
    workers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for column in fields(MachineRow):
            values = getattr(self, column.name)
            if len(values) != len(self.name):
                if values:
                    message = f"column '{column.name}' has {len(values)} machines"
                    raise BadValue(message, f"{len(self.name)}, as there are names")
                object.__setattr__(self, column.name, (column.default,) * len(self.name))

    def __len__(self) -> int:
        return len(self.name)

    def __iter__(self) -> Iterator[MachineRow]:
        columns = (getattr(self, column.name) for column in fields(MachineRow))
        return (MachineRow(*values) for values in zip(*columns, strict=True))

    def numbers(self, column: str) -> Floats:
        """A column of numbers, read-only; what is unknown is not a number."""
        values = [np.nan if value is None else float(value) for value in getattr(self, column)]
        numbers = np.array(values, dtype=np.float64)
        numbers.setflags(write=False)
        return numbers

    def mean_speed(self) -> float | None:
        """The mean power of a core, of those that work and were probed; none where none was.

        >>> MachineObservations(("a", "b", "c"), cores=(1, 3, 9), speed=(1.0, 0.5, None)).mean_speed()
        0.625
        """
        known = [(row.cores, row.speed) for row in self if row.works and row.speed]
        cores = sum(count for count, _ in known)
        return sum(count * speed for count, speed in known) / cores if cores else None

    @classmethod
    def of(cls, rows: Sequence[MachineRow]) -> MachineObservations:
        """The columns of some machines."""
        return cls(*(tuple(getattr(row, column.name) for row in rows) for column in fields(MachineRow)))
