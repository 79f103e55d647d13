"""Common autoscalers as baselines: DS2, a utilisation target per task, CPU thresholds for the whole cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.core_moves import fit_power
from headgate.errors import BadValue

__all__ = ["CpuThresholds", "Ds2", "UtilisationTarget"]


@dataclass(frozen=True, slots=True)
class Ds2:
    r"""Sets the parallelism of all tasks at once from the rates of the sources.

    .. math:: \pi_i = \lceil \lambda_i / \lambda^{true}_i \rceil

    with :math:`\lambda_i` the rate into task i if all before it kept up, and :math:`\lambda^{true}_i` the rate that
    one instance would process if it were never idle. What waits counts as if it came in. It knows no alternates, no
    machines and no throughput below 1.

    Reference: Kalavri et al. (2018), Three steps is all you need, OSDI.
    """

    name: str = "ds2"

    def decide(self, now: ClusterView, turn: int) -> None:
        del turn
        wanted = _wanted(now, 1.0)
        # An instance more than needed is taken away only when it is one whole: the paper rounds up.
        fit_power(now, wanted, wanted + float(now.cloud.largest.core_power))


@dataclass(frozen=True, slots=True)
class UtilisationTarget:
    """Returns each task to a target utilisation when it leaves a band around it; what waits is worked off as well.

    Flink's autoscaler does so, by default with a target of 0.7 and a band of 0.3 to either side.
    """

    target: float = 0.7
    low: float = 0.4
    high: float = 1.0
    name: str = "flink"

    def __post_init__(self) -> None:
        if not 0 < self.low < self.target < self.high <= 1:
            message = f"a target utilisation of {self.target:g} in a band from {self.low:g} to {self.high:g}"
            raise BadValue(message, "0 < low < target < high, at most 1")

    def decide(self, now: ClusterView, turn: int) -> None:
        del turn
        power = now.power
        demand = now.achievable() * now.cost
        with np.errstate(divide="ignore", invalid="ignore"):
            used = np.where(power > 0, demand / power, np.inf)
        outside = (used > self.high) | (used < self.low)
        wanted = np.where(outside, _wanted(now, self.target), np.where(now.cost > 0, np.minimum(power, 1e-9), 0.0))
        fit_power(now, wanted, np.where(outside, wanted + now.cloud.largest.core_power, np.inf))


@dataclass(frozen=True, slots=True)
class CpuThresholds:
    """Scales all tasks up by a tenth above 70 % CPU and down by a tenth below 30 %.

    As clouds' own autoscalers do with a group of machines; the mix of tasks stays as it was.
    """

    high: float = 0.7
    low: float = 0.3
    step: float = 0.1
    name: str = "cpu"

    def decide(self, now: ClusterView, turn: int) -> None:
        del turn
        power = now.power
        demand = np.minimum(now.achievable() * now.cost, power)
        busy = float(demand.sum() / power.sum()) if power.sum() > 0 else 1.0
        if busy > self.high:
            wanted = np.maximum(power * (1 + self.step), power + (now.cost > 0) * 1e-6)
            fit_power(now, wanted, np.full(len(power), np.inf))
        elif busy < self.low:
            least = np.where(now.cost > 0, 1e-9, 0.0)
            fit_power(now, least, np.maximum(power * (1 - self.step), least))


def _wanted(now: ClusterView, target: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    power: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = now.achievable() * now.cost / target
    return np.where(now.cost > 0, np.maximum(power, 1e-9), 0.0)
