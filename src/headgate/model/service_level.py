"""The service level of a dataflow: its limits and budget."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

__all__ = ["ServiceLevel"]


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """The limits within which a dataflow is run as cheaply as possible.

    ``throughput_min`` is Omega-hat of DYN, ``throughput_tolerance`` its epsilon; ``latency_max_s`` and
    ``latency_min_s`` are T_max and T_min of DRS (below the latter, resources may go); the two break-even costs are
    C_at_max and C_at_min of DYN, per hour; ``processors_max`` is K_max of DRS. ``None`` means that no limit is set.

    >>> ServiceLevel(throughput_min=0.8).throughput_band
    (0.75, 0.8500000000000001)
    """

    throughput_min: float = 0.8
    throughput_tolerance: float = 0.05
    latency_max_s: float | None = None
    latency_min_s: float | None = None
    budget_per_h: Decimal | None = None
    break_even_at_best_per_h: Decimal | None = None
    break_even_at_worst_per_h: Decimal | None = None
    processors_max: int | None = None
    time_within_min: float = 0.99
    """Share of a month in which throughput and latency are to be as agreed; the rest is the error budget."""

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise ValueError(problem)

    @property
    def throughput_band(self) -> tuple[float, float]:
        """The relative throughputs between which nothing need change."""
        return self.throughput_min - self.throughput_tolerance, self.throughput_min + self.throughput_tolerance

    def _problem(self) -> str | None:
        if self.latency_min_s is not None and self.latency_max_s is None:
            return "latency_min_s needs latency_max_s beside it"
        if (
            self.latency_min_s is not None
            and self.latency_max_s is not None
            and self.latency_min_s >= self.latency_max_s
        ):
            return f"latency_min_s {self.latency_min_s:g} must be below latency_max_s {self.latency_max_s:g}"
        best, worst = self.break_even_at_best_per_h, self.break_even_at_worst_per_h
        if (best is None) != (worst is None):
            return "break_even_at_best_per_h and break_even_at_worst_per_h come together or not at all"
        if best is not None and worst is not None and worst >= best:
            return f"break_even_at_worst_per_h {worst} must be below break_even_at_best_per_h {best}"
        return None
