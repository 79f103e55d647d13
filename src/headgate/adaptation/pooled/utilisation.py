"""Common autoscalers where tasks share cores: DS2, a target for the utilisation of a pool, and thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.adaptation.policy import Terms
from headgate.adaptation.pooled.deciding import Notes
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.pooled.machine_moves import add_power, grow, shrink
from headgate.errors import BadValue

__all__ = ["PoolThresholds", "PoolUtilisation", "PooledDs2"]


def _explain(draft: Draft, why: str, gone: int) -> None:
    added = int(draft.new.sum())
    if added or gone:
        what = f"{added} machines more" if added else f"{gone} machines less"
        draft.sentences.append(f"{why}: {what.replace('1 machines', '1 machine') if added + gone == 1 else what}")


@dataclass(frozen=True, slots=True)
class PooledDs2:
    r"""Machines for what comes from the sources, at a utilisation of 1; partitions for as many cores.

    .. math:: \sum_m cores_m \pi_m \ge \sum_i \lambda_i c_i

    In a shared pool the parallelism of a task costs nothing, so what DS2 computes by task is summed by pool.

    Reference: Kalavri et al. (2018), Three steps is all you need, OSDI.
    """

    def check(self, terms: Terms) -> None:
        """Nothing is needed."""

    def decide(self, draft: Draft, notes: Notes) -> str:
        del notes
        if not draft.keeps_up():
            grow(draft)
            draft.fit_partitions()
            _explain(draft, "what comes needs more than the pool can use", 0)
            return "demand above usable"
        gone = shrink(draft)
        if gone:
            draft.fit_partitions()
            _explain(draft, "less will do for what comes", gone)
            return "demand below usable"
        return "none"


@dataclass(frozen=True, slots=True)
class PoolUtilisation:
    """Returns a pool to a target utilisation D / U when it leaves a band around it; what waits is worked off as well.

    Flink's autoscaler does so for each task, by default with a target of 0.7 and a band of 0.3 to either side.
    """

    target: float = 0.7
    low: float = 0.4
    high: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.low < self.target < self.high <= 1:
            message = f"a target utilisation of {self.target:g} in a band from {self.low:g} to {self.high:g}"
            raise BadValue(message, "0 < low < target < high, at most 1")

    def check(self, terms: Terms) -> None:
        """Nothing is needed."""

    def decide(self, draft: Draft, notes: Notes) -> str:
        del notes
        limits = draft.limits()
        with np.errstate(divide="ignore", invalid="ignore"):
            used = np.where(limits.usable > 0, limits.demand / limits.usable, np.where(limits.demand > 0, np.inf, 0.0))
        draft.figures["utilisation"] = float(min(used.max(), 1e6))
        above, below = (used > self.high).any() or not len(draft.kept), used < self.low
        if above:
            grow(draft, 1.0 / self.target - 1.0)
            _explain(draft, f"utilisation is {used.max():.2f}, above {self.high:g}", 0)
            return "above band"
        if below.any():
            spare = np.where(below, limits.usable - limits.demand / self.target, 0.0)
            gone = shrink(draft, 0.0, np.maximum(spare, 0.0))
            if gone:
                _explain(draft, f"utilisation is {used.min():.2f}, below {self.low:g}", gone)
                return "below band"
        return "none"


@dataclass(frozen=True, slots=True)
class PoolThresholds:
    """A tenth more of a pool above 70 % CPU, a tenth less below 30 %, as clouds' own autoscalers do."""

    high: float = 0.7
    low: float = 0.3
    step: float = 0.1

    def check(self, terms: Terms) -> None:
        """Nothing is needed."""

    def decide(self, draft: Draft, notes: Notes) -> str:
        del notes
        if not len(draft.kept):
            grow(draft)
            _explain(draft, "there is no machine", 0)
            return "first deployment"
        limits = draft.limits()
        with np.errstate(divide="ignore", invalid="ignore"):
            busy = np.where(limits.usable > 0, np.minimum(limits.demand, limits.usable) / limits.usable, 1.0)
        draft.figures["busy"] = float(busy.max())
        if (busy > self.high).any():
            for pool in np.flatnonzero(busy > self.high).tolist():
                add_power(draft, pool, max(self.step * float(limits.usable[pool]), 1e-6))
            _explain(draft, f"{busy.max():.0%} of the cores are busy, above {self.high:.0%}", 0)
            return "above threshold"
        if (busy < self.low).any():
            gone = shrink(draft, 0.0, np.where(busy < self.low, self.step * limits.usable, 0.0))
            gone = gone or shrink(draft, 0.0, np.where(busy < self.low, _smallest(draft), 0.0))
            if gone:
                _explain(draft, f"{busy.min():.0%} of the cores are busy, below {self.low:.0%}", gone)
                return "below threshold"
        return "none"


def _smallest(draft: Draft) -> float:
    """The usable power of the smallest machine: whole machines are more than a tenth of a small pool."""
    machines = draft.seen.machines
    powers = machines.cores.sum(axis=1) * machines.speed
    return float(powers.min()) * (1 + 1e-9) if len(powers) else 0.0
