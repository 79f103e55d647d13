"""What a row costs in each alternate of a task, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headgate.model.names import Signature

__all__ = ["AlternateCost", "Origin"]


class Origin(StrEnum):
    """How a cost is known, best first."""

    GIVEN = "given"
    """With a command."""

    MEASURED = "measured"
    """Here, beside the epochs, while this alternate was active."""

    STORED = "stored profile"
    """By an engine before, of a task that does the same."""

    TRIAL = "trial"
    """Here, on kept rows, while another alternate was active."""

    SCALED = "scaled"
    """Declared, times what the active alternate was measured to need over what is declared for it."""

    DECLARED = "declared"
    """By the dataflow's author (``cost_s``)."""

    DEFAULT = "default"
    """Of the task type: an order of magnitude."""

    @property
    def is_measured(self) -> bool:
        return self in (Origin.MEASURED, Origin.STORED, Origin.TRIAL)


@dataclass(frozen=True, slots=True)
class AlternateCost:
    """The cost of a row in one alternate. An alternate of unknown cost has none, and policies cannot choose it."""

    task: Signature
    alternate: str
    cpu_s: float
    """Core-seconds on the reference core."""

    origin: Origin
    wait_s: float = 0.0
    """Seconds for which a core is held and not used: sleeping, a call, a disk."""

    spread: float | None = None
    """Standard error of ``cpu_s`` over ``cpu_s``, where it was measured more than once."""

    selectivity: float | None = None
    """Rows out per row in, where it is known."""

    def held_s(self, speed: float = 1.0) -> float:
        """For how long a row holds a core of a given speed.

        >>> AlternateCost(Signature("s"), "fast", 0.002, Origin.DECLARED, wait_s=0.01).held_s(0.5)
        0.014
        """
        return self.cpu_s / speed + self.wait_s
