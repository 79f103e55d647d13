"""What epochs cost: overheads, the power that is left for rows, and how long epochs must be."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, prod

from headgate.model.capacity import FragmentLoad, Pool
from headgate.queueing.compiled import borrowing

__all__ = ["epoch_length", "overhead_s", "partitions_of", "startable", "usable_line", "usable_power"]


@borrowing
def startable(epoch_s: float, overhead: float, power: float) -> float:
    r"""Reference cores that a fragment can use, were it alone (its cap).

    .. math:: \kappa = (1 - o / I) W / \sum_s (W_s / \Lambda_s), \quad o = f + \sum_s \lceil p_s / K \rceil task_s

    ``power`` is the second factor, the harmonic mean of its stages' powers; I is the time from epoch to epoch. An
    interval of 0 is the limit of flowing messages, without overheads.

    >>> startable(2.0, 0.255, 4.0), startable(0.0, 0.255, 4.0)
    (3.49, 4.0)
    """
    return power * max(1.0 - overhead / epoch_s, 0.0) if epoch_s > 0.0 else power


def partitions_of(load: FragmentLoad, cores: int) -> list[int]:
    return [stage.partitions or cores for stage in load.stages]


def overhead_s(load: FragmentLoad, cores: int) -> float:
    """Seconds of an epoch in which its rows do not advance: f, and starting each wave of each stage."""
    return load.fixed_s + sum(ceil(p / cores) for p in partitions_of(load, cores)) * load.task_s


def usable_power(pool: Pool, loads: Sequence[FragmentLoad], epoch_s: float) -> float:
    r"""Reference cores that a pool has for rows when epochs are so long.

    .. math:: U = u \Phi - \sum_g h_g / I_g, \quad u = 1 - \prod_g f_g / I_g, \quad h_g = task_g \sum_s p_s

    Cores are idle only while all fragments are in the driver. A measured u takes the place of this prior.

    >>> from headgate.model.capacity import CoreShare, StageLoad
    >>> loads = [FragmentLoad(name, "spark", (StageLoad((name,), 4),), 0.25, 0.005) for name in ("parse", "smooth")]
    >>> round(usable_power(Pool("spark", (CoreShare("a", 4, 1.0),)), loads, 2.0), 3)
    3.917
    """
    per_power, per_core, lost = usable_line(loads, epoch_s, pool.used)
    return max(per_power * pool.power - per_core * len(pool.speeds) - lost, 0.0)


def usable_line(loads: Sequence[FragmentLoad], epoch_s: float, used: float | None = None) -> tuple[float, float, float]:
    """What is usable of a reference core, less what each core starts tasks for, less what is lost in any case.

    So power and cores of a pool count linearly: what a machine adds does not depend on the others.

    >>> from headgate.model.capacity import StageLoad
    >>> loads = [FragmentLoad("parse", "spark", (StageLoad(("parse",)),), 0.5, 0.02)]
    >>> usable_line(loads, 2.0)
    (0.75, 0.01, 0.0)
    """
    if epoch_s <= 0:
        return 1.0, 0.0, 0.0
    intervals = [max(epoch_s, load.trigger_s) for load in loads]
    prior = 1 - prod(min(load.fixed_s / each, 1.0) for load, each in zip(loads, intervals, strict=True))
    pairs = zip(loads, intervals, strict=True)
    timed = [(load.task_s / each, stage.partitions) for load, each in pairs for stage in load.stages]
    everywhere = sum(seconds for seconds, partitions in timed if partitions is None)
    fixed = sum((seconds * partitions for seconds, partitions in timed if partitions is not None), 0.0)
    return prior if used is None else used, everywhere, fixed


def epoch_length(pool: Pool, loads: Sequence[FragmentLoad], work: float, headroom: float = 0.1) -> float:
    r"""The shortest epochs with which a pool keeps up; infinite if none are long enough.

    .. math:: L^* = \min \{ L \ge trigger : work \le (1 - headroom) U(L) \}

    ``work`` is what arrives, in reference core-seconds a second. With one fragment, without headroom and without
    starting costs it is f / (1 - work / Phi).

    >>> from headgate.model.capacity import CoreShare, StageLoad
    >>> one = [FragmentLoad("a", "spark", (StageLoad(("a",), 4),), 0.25)]
    >>> round(epoch_length(Pool("spark", (CoreShare("a", 4, 1.0),)), one, 3.0, headroom=0.0), 6)
    1.0
    """
    low = max((load.trigger_s for load in loads), default=0.0)

    def suffices(seconds: float) -> bool:
        return work <= (1 - headroom) * usable_power(pool, loads, seconds)

    if not any(load.fixed_s or load.task_s for load in loads) or (low > 0 and suffices(low)):
        return low if work <= (1 - headroom) * pool.power else inf
    low, high = max(low, 1e-3), 1e6
    if not suffices(high):
        return inf
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
