"""Part ``horizon`` of ``headgate bench lookahead``: PLAN-AHEAD's Fig. 5.

Relative throughput, profit and stability by the length of the prediction interval, with a perfect oracle.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from headgate_benchmarks.lookahead.trials import BLIND, REACTIVE, STEP_S, Row, Study, Told, head, line, means, trial

if TYPE_CHECKING:
    from headgate_benchmarks.lookahead.workloads import Workload

__all__ = ["HORIZON"]

HORIZONS_MIN = (10, 20, 30, 40, 50, 60)
SEEING = ("lookahead", "lookahead-plain", "wpa", "wpo", "wpp")
SHOWN = ("lookahead", "lookahead-plain", *REACTIVE)


def _trials(world: Workload) -> list[Row]:
    from headgate.adaptation.look_ahead import LookAheadSettings

    rows = [trial(world, policy, LookAheadSettings("oracle", STEP_S), horizon_min=0) for policy in BLIND]
    return rows + [
        trial(world, policy, LookAheadSettings("oracle", 60.0 * minutes), horizon_min=minutes)
        for minutes in HORIZONS_MIN
        for policy in SEEING
    ]


def _told(rows: Sequence[Row]) -> Told:
    mean = means(rows, "policy", "horizon_min")

    def at(policy: str, measure: str) -> list[float]:
        return [mean[policy, 0 if policy in BLIND else each][measure] for each in HORIZONS_MIN]

    found = Told()
    figures = found.figures
    for policy in SHOWN:
        for measure in ("omega", "profit", "chi", "changes"):
            for place, minutes in enumerate(HORIZONS_MIN):
                if policy not in BLIND or place == 0:
                    when = "" if policy in BLIND else f"_{minutes}min"
                    figures[f"horizon_{policy}_{measure}{when}"] = at(policy, measure)[place]
    ours = at("lookahead", "profit")
    best = [max(at(policy, "profit")[place] for policy in REACTIVE) for place in range(len(HORIZONS_MIN))]
    gain = max(mine / other - 1 for mine, other in zip(ours, at("caf", "profit"), strict=True))
    least = {policy: min(at(policy, "omega")) for policy in ("lookahead", *REACTIVE)}
    low = min(least, key=lambda each: least[each])
    told = f"all policies keep Ω at 0.8 or above (the least is {low}'s, {least[low]:.3f})"
    found.find("all_meet_throughput", least[low] >= 0.8, told)
    won = sum(mine > other for mine, other in zip(ours, best, strict=True))
    told = f"look-ahead's profit is above that of every reactive model at {won} of {len(ours)} horizons"
    found.find("lookahead_beats_reactive", won == len(ours), told)
    for policy, name in (("lookahead-plain", "plain_"), ("lookahead", "")):
        curve = at(policy, "profit")
        ups = [later > earlier for earlier, later in pairwise(curve)]
        rise = f"{curve[0]:.4f} at {HORIZONS_MIN[0]} min to {curve[2]:.4f} at {HORIZONS_MIN[2]} min"
        told = f"the profit of {policy} rises with the horizon: from {rise}, {sum(ups[:2])} of 2 steps up"
        found.find(f"{name}profit_rises_to_30_min", all(ups[:2]), told)
        told = f"and on to {curve[-1]:.4f} at {HORIZONS_MIN[-1]} min: {sum(ups)} of {len(ups)} steps up"
        found.find(f"{name}profit_rises_to_60_min", all(ups), told)
    told = f"look-ahead earns up to 20 % more than CAF: {gain:.1%} at most here, on Γ - σμ"
    found.find("up_to_20_percent", gain >= 0.10, told)
    chi = {policy: statistics.mean(at(policy, "chi")) for policy in ("lookahead", *REACTIVE)}
    second = min((policy for policy in REACTIVE), key=lambda each: chi[each])
    told = (
        f"look-ahead is the most stable: χ {chi['lookahead']:.0f}, the best reactive model {second} {chi[second]:.0f}"
    )
    found.find("lookahead_most_stable", chi["lookahead"] < chi[second], told)
    worst = [min(REACTIVE, key=lambda each: at(each, "profit")[place]) for place in range(len(HORIZONS_MIN))]
    told = f"WPP has the lowest profit: at {worst.count('wpp')} of {len(worst)} horizons"
    found.find("wpp_worst", worst.count("wpp") > len(worst) / 2, told)
    apart = abs(at("caf", "profit")[0] - at("waaf", "profit")[0]) / at("caf", "profit")[0]
    found.find("caf_like_waaf", apart < 0.02, f"CAF and WAAF have about the same profit: {apart:.1%} apart")
    figures["horizon_gain_over_caf"] = gain
    found.table = ["Fig. 5: profit Γ - σμ by horizon (minutes), with a perfect oracle", head(HORIZONS_MIN)]
    found.table += [line(policy, at(policy, "profit")) for policy in SHOWN]
    found.table += ["stability χ", *(line(policy, at(policy, "chi")) for policy in SHOWN)]
    found.table += ["relative throughput Ω", *(line(policy, at(policy, "omega")) for policy in SHOWN)]
    return found


HORIZON = Study("horizon", _trials, _told)
