"""How near runs came to what could have been: regret and ratio against the bound of hindsight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headgate.planning.programs.hindsight import Hindsight, hindsight
from headgate.simulation.run import Run

__all__ = ["Regret", "regrets"]

SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Regret:
    r"""A run and the bound. Profits are PLAN-AHEAD's, :math:`\Gamma - \sigma\mu`, unless they say otherwise."""

    policy: str
    omega: float
    meets: bool
    """Whether it reached the throughput; the bound is on those that do."""

    profit: float
    regret: float
    """The bound minus the profit."""

    hindsight_ratio: float
    """The profit over the bound; both are positive unless machines cost more than all value is worth."""

    theta_ratio: float
    r"""The same in DYN's form, which is 0 on both break-even points: the harder measure."""


def regrets(
    runs: Sequence[Run],
    time_limit_s: float = 120.0,
    progress: Callable[[str], None] | None = None,
    bound: Hindsight | None = None,
) -> tuple[Hindsight, list[Regret]]:
    """The bound for the first replication of a world, and how near each run came to it."""
    setting = runs[0].setting
    bound = bound or hindsight(setting, 0, time_limit_s, progress=progress)
    throughput_min = setting.dataflow.service_level.throughput_min
    results = []
    for run in runs:
        seen = run.summary()
        profit = bound.break_even.net_value(seen.gamma, seen.cost)
        best = bound.theta(bound.bound)
        results.append(
            Regret(
                run.policy,
                seen.omega,
                seen.omega >= throughput_min - SLACK,
                profit,
                bound.bound - profit,
                profit / bound.bound if bound.bound > 0 else float("nan"),
                bound.theta(profit) / best if best > 0 else float("nan"),
            )
        )
    return bound, results
