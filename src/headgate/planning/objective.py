"""Profit: the value of a dataflow's alternates against the cost of its machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue
from headgate.model.dataflow import Dataflow

__all__ = ["BreakEven", "Floats", "value_range"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BreakEven:
    r"""Two break-even points, between which profit is linear.

    At value ``value_max`` (:math:`\Gamma_{max}`) the machines may cost ``cost_at_max``, at ``value_min`` they may cost
    ``cost_at_min``; both are for the same span of time.

    >>> even = BreakEven(1.0, 0.7075, 80, 60)
    >>> round(even.sigma, 6), even.profit(1.0, 80), even.profit(0.7075, 60), even.net_value(0.875, 1.0)
    (0.014625, 0.0, 0.0, 0.860375)
    """

    value_max: float
    value_min: float
    cost_at_max: float
    cost_at_min: float

    def __post_init__(self) -> None:
        if not self.cost_at_max > self.cost_at_min >= 0:
            message = f"break-even costs of {self.cost_at_max:g} at best and {self.cost_at_min:g} at worst"
            raise BadValue(message, "the one at best above the other, and neither below 0")

    @property
    def sigma(self) -> float:
        r"""What a unit of money is worth in value.

        .. math:: \sigma = (\Gamma_{max} - \Gamma_{min}) / (C_{max} - C_{min})

        It is 0 where no task has a choice. Reference: DYN, Eq. 9.
        """
        return (self.value_max - self.value_min) / (self.cost_at_max - self.cost_at_min)

    def profit(self, value: float, cost: float) -> float:
        r""":math:`\Theta = \Gamma - \Gamma_{max} - \sigma (\mu - C_{max})`: 0 on both points (DYN, Eq. 8)."""
        return value - self.value_max - self.sigma * (cost - self.cost_at_max)

    def net_value(self, value: float, cost: float) -> float:
        r""":math:`\Gamma - \sigma \mu`: the same without its constant (PLAN-AHEAD)."""
        return value - self.sigma * cost

    def times(self, factor: float) -> BreakEven:
        """The same for another span of time."""
        return BreakEven(self.value_max, self.value_min, self.cost_at_max * factor, self.cost_at_min * factor)

    def profits(self, values: Floats, costs: Floats, spans: Floats | Sequence[float]) -> Floats:
        """Profit for many spans, each ``spans`` times as long as the one that the costs are for."""
        at_max = self.cost_at_max * np.asarray(spans)
        rate = (self.value_max - self.value_min) / (at_max - self.cost_at_min * np.asarray(spans))
        return np.asarray(values - self.value_max - rate * (costs - at_max))

    @classmethod
    def of(cls, dataflow: Dataflow) -> BreakEven | None:
        """That of an hour, from a dataflow's alternates and service level; none if it names no costs."""
        level = dataflow.service_level
        if level.break_even_at_best_per_h is None or level.break_even_at_worst_per_h is None:
            return None
        best, worst = value_range(dataflow)
        return cls(best, worst, float(level.break_even_at_best_per_h), float(level.break_even_at_worst_per_h))


def value_range(dataflow: Dataflow) -> tuple[float, float]:
    """The value of a dataflow with its best and with its worst alternates (Eq. 3)."""
    worst = [min(task.relative_values) for task in dataflow.tasks]
    return 1.0, sum(worst) / len(worst)
