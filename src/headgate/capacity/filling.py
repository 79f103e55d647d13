"""Who gets how much of what is there: max-min fairness by weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.queueing.compiled import compiled

__all__ = ["water_filling"]


@compiled
def water_filling(total: float, wanted: Any, weight: Any) -> Any:
    r"""Share ``total``: nobody gets more than is wanted, and who gets less gets it in proportion to weight.

    .. math:: x_g = \min(need_g, w_g \theta), \quad \sum_g x_g = \min(total, \sum_g need_g)

    >>> water_filling(4.0, np.array([0.8, 6.0, 2.0]), np.ones(3)).tolist()
    [0.8, 1.6, 1.6]
    >>> water_filling(4.0, np.array([9.0, 9.0]), np.array([3.0, 1.0])).tolist()
    [3.0, 1.0]

    Reference: D. Bertsekas and R. Gallager, Data Networks (1992), section 6.5.2.
    """
    shares = np.zeros(len(wanted))
    done = wanted <= 0.0
    left = total
    while True:
        weights = 0.0
        for g in range(len(wanted)):
            weights += 0.0 if done[g] else weight[g]
        if weights <= 0.0 or left <= 0.0:
            return shares
        level = left / weights
        full = False
        for g in range(len(wanted)):
            if not done[g] and wanted[g] <= weight[g] * level:
                shares[g] = wanted[g]
                left -= wanted[g]
                done[g] = full = True
        if not full:
            for g in range(len(wanted)):
                if not done[g]:
                    shares[g] = weight[g] * level
            return shares
