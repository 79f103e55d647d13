"""The cheapest machines for a demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np

from headgate.model.arrays import Ints
from headgate.model.cluster.vm_class import VmClass
from headgate.queueing.compiled import compiled

__all__ = ["cheapest_cover"]

GRID = 2_000


def cheapest_cover(classes: Sequence[VmClass], power: float) -> Mapping[str, int]:
    r"""Machines by class whose power covers a demand at least cost; of equal ones the fewest machines.

    .. math:: \min \sum_m price_m n_m : \sum_m cores_m \pi_m n_m \ge power

    An integer covering knapsack, by dynamic programming over the power that is missing. Powers are rounded down to a
    grid (of two thousandths of the demand, or what divides all classes), so a cover always covers.

    >>> from decimal import Decimal
    >>> small = VmClass("small", 1, 1.0, 100, Decimal("0.06"))
    >>> large = VmClass("large", 4, 2.0, 100, Decimal("0.40"))
    >>> dict(cheapest_cover([small, large], 10.0)), dict(cheapest_cover([small, large], 5.0))
    ({'small': 2, 'large': 1}, {'small': 5})
    """
    if power <= 0:
        return {}
    step = _step([each.cores * each.core_power for each in classes], power)
    gains = [int(each.cores * each.core_power / step + 1e-9) for each in classes]
    needed = ceil(power / step - 1e-9)
    cheapest = _cheapest(needed, np.array(gains, dtype=np.int64), _whole_prices(classes, needed))
    counts: dict[str, int] = {}
    missing = needed
    while missing > 0:
        place = int(cheapest[missing])
        counts[classes[place].name] = counts.get(classes[place].name, 0) + 1
        missing -= gains[place]
    return counts


@compiled
def _cheapest(needed: int, gains: Any, prices: Any) -> Any:
    """For every power up to what is needed, the class of one machine of a cheapest cover; of equal ones the first."""
    cost, count = np.zeros(needed + 1, np.int64), np.zeros(needed + 1, np.int64)
    chosen = np.full(needed + 1, -1)
    for missing in range(1, needed + 1):
        for place in range(len(gains)):
            if gains[place] <= 0:
                continue
            rest = max(missing - gains[place], 0)
            here, many = cost[rest] + prices[place], count[rest] + 1
            better = here < cost[missing] or (here == cost[missing] and many < count[missing])
            if chosen[missing] < 0 or better:
                cost[missing], count[missing], chosen[missing] = here, many, place
    return chosen


def _whole_prices(classes: Sequence[VmClass], needed: int) -> Ints:
    """Prices as whole numbers, exact unless they have so many digits that sums of them would be too large."""
    places = max(max(-int(each.price_per_h.as_tuple().exponent), 0) for each in classes)
    scaled = [int(each.price_per_h.scaleb(places)) for each in classes]
    room = 2**62 // ((needed + 1) * max(scaled)) if max(scaled) else 1
    if room < 1:
        scaled = [max(each * (2**62 // (needed + 1)) // max(scaled), 1) for each in scaled]
    return np.array(scaled, dtype=np.int64)


def _step(powers: Sequence[float], demand: float) -> float:
    """A hundredth of a core where that is exact for all and not too fine, otherwise a part of the demand."""
    exact = all(abs(power * 100 - round(power * 100)) < 1e-9 for power in powers)
    return 0.01 if exact and demand <= GRID / 10 else min(demand / GRID, min(powers))
