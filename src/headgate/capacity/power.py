"""How fast a stage runs: its partitions on cores of given speeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.queueing.compiled import compiled

__all__ = ["partitions_for", "stage_power"]


SEVERAL_WAVES = 1.25
"""By how much several waves must be faster than one."""

SHORTEST_S = 0.25
"""Core-seconds of work that a task of several waves has at least: shorter ones take as long to start."""


@compiled
def stage_power(partitions: int, speeds: Any) -> float:
    r"""Reference cores that a stage of equal partitions can use, if it has all cores for itself.

    .. math:: \Lambda(p) = 1 / t(p)

    with t the seconds that p tasks of 1/p reference core-seconds take when a free core takes the next one, the fastest
    first (Graham's list scheduling). With K cores of one speed :math:`\pi`: :math:`\pi p / \lceil p / K \rceil`. No
    partitions stand for as many as one likes: the sum of the speeds.

    >>> stage_power(12, np.full(8, 1.0)), stage_power(6, np.full(8, 1.0)), stage_power(0, np.full(8, 1.0))
    (6.0, 6.0, 8.0)
    >>> two_fast = np.array([1.0, 1.0, 0.15, 0.15, 0.15])  # the slow ones hold everybody up
    >>> round(stage_power(5, two_fast), 2), round(stage_power(17, two_fast), 2)
    (0.75, 2.43)

    Reference: R. L. Graham, Bounds on multiprocessing timing anomalies, SIAM J. Appl. Math. 17 (1969).
    """
    count = len(speeds)
    if count == 0:
        return 0.0
    slowest: float = speeds.min()
    fastest: float = speeds.max()
    total: float = speeds.sum()
    if partitions == 0 or total <= 0.0:
        return total
    if slowest == fastest:
        waves: float = np.ceil(partitions / count)
        return slowest * partitions / waves
    free = np.zeros(count)
    end = 0.0
    for _ in range(partitions):
        chosen = -1
        for k in range(count):
            if speeds[k] > 0.0 and (
                chosen < 0 or free[k] < free[chosen] or (free[k] == free[chosen] and speeds[k] > speeds[chosen])
            ):
                chosen = k
        free[chosen] += 1.0 / (partitions * speeds[chosen])
        end = max(end, free[chosen])
    return 1.0 / end


def partitions_for(speeds: Any, work_s: float, task_s: float) -> int:
    r"""The partitions that leave a stage most power, of 1, K and 4K to 8K: one wave, or at least four.

    ``work_s`` is the stage's work in an epoch, ``task_s`` what a partition costs without rows; both in core-seconds.
    Two or three waves are worse in chains of fragments, where nobody fills the last one. Four and more lose a tenth to
    the last one as well, and speeds of equal machines are measured a tenth apart: they are for machines that differ,
    and for work that is worth starting as many tasks.

    >>> partitions_for(np.full(4, 1.0), 8.0, 0.01), partitions_for(np.array([1.0, 1.0, 0.5, 0.5]), 8.0, 0.01)
    (4, 18)
    >>> (
    ...     partitions_for(np.array([1.1, 1.1, 1.0, 1.0]), 8.0, 0.01),
    ...     partitions_for(np.array([1.0, 1.0, 0.5, 0.5]), 1.0, 0.01),
    ... )
    (4, 4)
    """
    cores = len(speeds)
    mean = float(np.mean(speeds))

    def seconds(partitions: int) -> float:
        waves = -(-partitions // cores)
        return work_s / float(stage_power(partitions, speeds)) + waves * task_s / mean

    one_wave = min((1, cores), key=seconds)
    most = min(8 * cores, int(work_s / SHORTEST_S))
    if most < 4 * cores:
        return one_wave
    # Of many cores, one partition more or less does not matter.
    several = min(range(4 * cores, most + 1, max(cores // 16, 1)), key=seconds)
    return several if seconds(several) * SEVERAL_WAVES < seconds(one_wave) else one_wave
