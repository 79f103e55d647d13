"""The cost of events beyond start-up: the difference of a run over many and one over few."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cost"]


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU and time of two runs, over few events and over many.

    >>> cost = Cost(cpu_s=(10.0, 16.0), wall_s=(6.0, 9.0), events=(100_000, 400_000))
    >>> cost.cpu_s_per_million, cost.events_per_s, cost.is_clear
    (20.0, 100000.0, True)
    """

    cpu_s: tuple[float, float]
    wall_s: tuple[float, float]
    events: tuple[int, int]

    @property
    def is_clear(self) -> bool:
        """Whether more events cost more; they may not where they are few and the machine is busy."""
        return self.cpu_s[1] > self.cpu_s[0] and self.wall_s[1] > self.wall_s[0]

    @property
    def cpu_s_per_million(self) -> float:
        return 1e6 * (self.cpu_s[1] - self.cpu_s[0]) / self._more

    @property
    def events_per_s(self) -> float:
        return self._more / max(self.wall_s[1] - self.wall_s[0], 1e-9)

    @property
    def _more(self) -> int:
        return self.events[1] - self.events[0]
