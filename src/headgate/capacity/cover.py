"""The cheapest machines for a demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import ceil

from headgate.model.cluster.vm_class import VmClass

__all__ = ["cheapest_cover"]

GRID = 2_000


def cheapest_cover(classes: Sequence[VmClass], power: float) -> Mapping[str, int]:
    r"""Machines by class whose power covers a demand at least cost; of equal ones the fewest machines.

    .. math:: \min \sum_m price_m n_m : \sum_m cores_m \pi_m n_m \ge power

    An integer covering knapsack, by dynamic programming over the power that is missing. Powers are rounded down to a
    grid (of two thousandths of the demand, or what divides all classes), so a cover always covers.

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
    best: list[tuple[Decimal, int, int]] = [(Decimal(0), 0, -1)]
    for missing in range(1, needed + 1):
        options = [
            (best[max(missing - gain, 0)][0] + each.price_per_h, best[max(missing - gain, 0)][1] + 1, place)
            for place, (each, gain) in enumerate(zip(classes, gains, strict=True))
            if gain > 0
        ]
        best.append(min(options))
    counts: dict[str, int] = {}
    missing = needed
    while missing > 0:
        place = best[missing][2]
        counts[classes[place].name] = counts.get(classes[place].name, 0) + 1
        missing -= gains[place]
    return counts


def _step(powers: Sequence[float], demand: float) -> float:
    """A hundredth of a core where that is exact for all and not too fine, otherwise a part of the demand."""
    exact = all(abs(power * 100 - round(power * 100)) < 1e-9 for power in powers)
    return 0.01 if exact and demand <= GRID / 10 else min(demand / GRID, min(powers))
