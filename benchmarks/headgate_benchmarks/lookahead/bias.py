"""Part ``bias`` of ``headgate bench lookahead``: PLAN-AHEAD's Fig. 7.

Profit of those that use forecasts, by error, for three biases.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate_benchmarks.lookahead.trials import Row, Study, Told, head, line, means, trial

if TYPE_CHECKING:
    from headgate_benchmarks.lookahead.workloads import Workload

__all__ = ["BIAS"]

ERRORS = (0.0, 0.05, 0.10, 0.15, 0.20)
BIASES = (0.0, -0.05, 0.05)
BIAS_HORIZON_MIN = 20
"""As in the paper."""

POLICIES = ("lookahead", "wpa", "wpo", "wpp")


def _trials(world: Workload) -> list[Row]:
    from headgate.adaptation.look_ahead import LookAheadSettings

    return [
        trial(
            world, policy, LookAheadSettings(f"oracle:{error}:{bias}", 60.0 * BIAS_HORIZON_MIN), error=error, bias=bias
        )
        for bias in BIASES
        for error in ERRORS
        for policy in POLICIES
    ]


def _told(rows: Sequence[Row]) -> Told:
    mean = means(rows, "policy", "bias", "error")
    found = Told()
    figures = {
        f"bias_{round(100 * bias)}_{policy}_profit_{round(100 * error)}": mean[policy, bias, error]["profit"]
        for policy in POLICIES
        for bias in BIASES
        for error in ERRORS
    }

    def profit(policy: str, bias: float) -> list[float]:
        return [mean[policy, bias, error]["profit"] for error in ERRORS]

    small = [place for place, error in enumerate(ERRORS) if error <= 0.10]
    wins = sum(
        profit("lookahead", bias)[place] > max(profit(each, bias)[place] for each in POLICIES[1:])
        for bias in BIASES
        for place in small
    )
    told = f"with errors up to 10 % look-ahead is best whatever the bias: in {wins} of {len(small) * len(BIASES)} cases"
    found.find("lookahead_best_at_small_errors", wins == len(small) * len(BIASES), told)
    cases = [(bias, error) for bias in BIASES for error in ERRORS]
    fair = 0
    for bias, error in cases:
        able = [each for each in POLICIES[1:] if mean[each, bias, error]["omega"] >= 0.8]
        others = [mean[each, bias, error]["profit"] for each in able]
        fair += mean["lookahead", bias, error]["profit"] > max(others, default=-1.0)
    figures["bias_wpo_omega_min"] = min(mean["wpo", *case]["omega"] for case in cases)
    figures["bias_lookahead_omega_min"] = min(mean["lookahead", *case]["omega"] for case in cases)
    figures["bias_lookahead_best_with_throughput"] = fair
    found.figures = figures
    told = f"  (of those that keep Ω at 0.8, look-ahead is best in {fair} of {len(cases)} cases; WPO has"
    least, ours = figures["bias_wpo_omega_min"], figures["bias_lookahead_omega_min"]
    found.remarks.append(f"{told} {least:.2f} at the least, look-ahead {ours:.2f})")
    spread = {each: max(max(profit(each, b)) - min(profit(each, b)) for b in BIASES) for each in POLICIES}
    told = f"WPA hardly depends on the error ({spread['wpa']:.4f} at most), look-ahead does ({spread['lookahead']:.4f})"
    found.find("wpa_steady", spread["wpa"] < spread["lookahead"], told)
    over = [mine - other for mine, other in zip(profit("wpo", -0.05), profit("wpa", -0.05), strict=True)]
    told = f"WPO beats WPA where forecasts are too low: by {statistics.mean(over):.4f} in the mean"
    found.find("wpo_beats_wpa_low_bias", statistics.mean(over) > 0, told)
    over = [mine - other for mine, other in zip(profit("wpo", 0.0), profit("wpa", 0.0), strict=True)]
    told = f"WPO does worse than WPA without a bias: by {-statistics.mean(over):.4f} in the mean"
    found.find("wpo_poor_unbiased", statistics.mean(over) < 0, told)
    last = sum(
        profit("wpp", bias)[place] <= min(profit(each, bias)[place] for each in POLICIES)
        for bias in BIASES
        for place in range(len(ERRORS))
    )
    told = f"WPP does worst under all biases: in {last} of {len(ERRORS) * len(BIASES)} cases"
    found.find("wpp_worst_under_all", last == len(ERRORS) * len(BIASES), told)
    found.table = [f"Fig. 7: profit by error, {BIAS_HORIZON_MIN} min ahead"]
    for bias in BIASES:
        found.table += [f"bias {bias:+.0%}", head(f"{error:.0%}" for error in ERRORS)]
        found.table += [line(policy, profit(policy, bias)) for policy in POLICIES]
    return found


BIAS = Study("bias", _trials, _told)
