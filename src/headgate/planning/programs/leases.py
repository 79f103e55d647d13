"""Leases of machines: from when to when, their cost, and the power they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.model.cluster.vm_class import BillingPeriod, Cloud

__all__ = ["Leases", "presence"]

SHORTEST_S = 1.0
"""What a machine is paid for at least, also if it is let go of at once."""


def presence(boot_s: float, interval_s: float, intervals: int) -> Floats:
    """The share of each interval, from its start on, in which a booting machine works.

    >>> presence(90.0, 60.0, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    ends = (np.arange(intervals) + 1) * interval_s
    return np.clip((ends - boot_s) / interval_s, 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Leases:
    """All leases of one machine: first interval and length.

    Only ways that end with a paid period or with the time itself are there: letting go earlier saves nothing. The first
    way is to let go of a machine as soon as it is had: it gives nothing, at the least that a machine can cost, which is
    less than an interval where intervals are longer than what is paid for at least. What a machine costs while it shuts
    down is left out, and so are interruptions: both only cost.
    """

    cloud: Cloud
    interval_s: float
    intervals: int
    warm: bool
    """Whether machines of the first interval are ready when it begins."""

    begin: Ints
    end: Ints
    periods: Ints

    @classmethod
    def of(cls, cloud: Cloud, interval_s: float, intervals: int, warm: bool) -> Leases:
        begins, ends, paid = [0], [0], [cloud.billing.periods(min(SHORTEST_S, interval_s))]
        counts = [cloud.billing.periods(n * interval_s) for n in range(intervals + 2)]
        for begin in range(intervals):
            left = intervals - begin
            for length in range(1, left + 1):
                if length == left or counts[length + 1] > counts[length]:
                    begins.append(begin)
                    ends.append(begin + length)
                    paid.append(counts[length])
        arrays = (np.array(each, dtype=np.int64) for each in (begins, ends, paid))
        return cls(cloud, interval_s, intervals, warm, *arrays)

    @property
    def billing(self) -> BillingPeriod:
        return self.cloud.billing

    def cost(self, kind: int) -> Floats:
        """What each way costs with a machine of a class."""
        price = float(self.cloud.classes[kind].price_per_h) * self.billing.period_s / 3_600
        return np.asarray(self.periods.astype(np.float64) * price)

    def least_cost(self) -> float:
        """What any machine costs at least."""
        return min(float(self.cost(kind)[0]) for kind in range(len(self.cloud.classes)))

    def works(self, kind: int, way: int) -> Floats:
        """The share of each interval for which a machine works that is held this way."""
        begin, end = int(self.begin[way]), int(self.end[way])
        works = np.zeros(self.intervals)
        boot_s = 0.0 if self.warm and begin == 0 else self.cloud.classes[kind].boot_s
        works[begin:end] = presence(boot_s, self.interval_s, end - begin)
        return works

    def worth(self, kind: int, speed: Floats, power_price: Floats, core_price: Floats) -> Floats:
        """What each way brings at given prices, by machine (a row of ``speed``) and way; costs are not taken off."""
        vm = self.cloud.classes[kind]
        power = vm.cores * vm.core_power * power_price * speed
        cores = np.broadcast_to(vm.cores * core_price, speed.shape)
        worth = _between(power, self.begin, self.end) + _between(cores, self.begin, self.end)
        cold = (self.begin > 0) | (not self.warm)
        missing = 1.0 - presence(vm.boot_s, self.interval_s, self.intervals)
        for late in np.flatnonzero(missing > 0):
            at = self.begin + late
            hit = np.flatnonzero(cold & (at < self.end))
            worth[:, hit] -= missing[late] * power[:, at[hit]]
            if missing[late] >= 1.0:
                worth[:, hit] -= cores[:, at[hit]]
        return worth


def _between(values: Floats, begin: Ints, end: Ints) -> Floats:
    total = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    return np.asarray(total[:, end] - total[:, begin])
