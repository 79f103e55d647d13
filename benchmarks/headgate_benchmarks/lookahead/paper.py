"""PLAN-AHEAD's Figs. 5 to 7: parts ``horizon``, ``error`` and ``bias`` of ``headgate bench lookahead``."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from headgate_benchmarks.lookahead.trials import BLIND, MEASURES, REACTIVE, Sizes, on_worlds, sideways, trial
from headgate_benchmarks.study import Conclusion, Measured, Progress, Row, Study, means

if TYPE_CHECKING:
    from headgate_benchmarks.lookahead.workloads import Workload

__all__ = ["bias", "error", "horizon"]

SEEING = ("lookahead", "wpa", "wpo", "wpp")
SHOWN = ("lookahead", *REACTIVE)
BIASES = (0.0, -0.05, 0.05)
BIAS_HORIZON_MIN = 20
"""As in the paper."""

BIASED = ("lookahead", "wpa", "wpo", "wpp")


def _values(rows: Sequence[Row], key: str) -> list[float]:
    return sorted({row[key] for row in rows})


def horizon(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Fig. 5: throughput, profit and stability by the length of the prediction interval, with a perfect oracle."""
    from headgate.adaptation.look_ahead import PolicySettings

    def trials(world: Workload) -> Iterator[Row]:
        for policy in BLIND:
            yield trial(world, policy, PolicySettings("oracle", 300.0), horizon_min=0)
        for minutes in sizes.horizons_min:
            for policy in SEEING:
                yield trial(world, policy, PolicySettings("oracle", 60.0 * minutes), horizon_min=minutes)

    return on_worlds(Study("horizon", trials, _conclude_horizon), seed, progress, sizes)


def _conclude_horizon(rows: Sequence[Row]) -> Conclusion:
    mean = means(rows, MEASURES, "policy", "horizon_min")
    horizons = [int(each) for each in _values(rows, "horizon_min") if each]

    def at(policy: str, measure: str) -> list[float]:
        return [mean[policy, 0 if policy in BLIND else each][measure] for each in horizons]

    conclusion = Conclusion()
    for policy in SHOWN:
        for measure in ("omega", "profit", "chi", "changes"):
            if policy in BLIND:
                conclusion.figures[f"horizon_{policy}_{measure}"] = at(policy, measure)[0]
                continue
            for minutes, value in zip(horizons, at(policy, measure), strict=True):
                conclusion.figures[f"horizon_{policy}_{measure}_{minutes}min"] = value
    ours, caf = at("lookahead", "profit"), at("caf", "profit")
    gain = max(mine / other - 1 for mine, other in zip(ours, caf, strict=True))
    conclusion.figures["horizon_gain_over_caf"] = gain
    least = {policy: min(at(policy, "omega")) for policy in ("lookahead", *REACTIVE)}
    low = min(least, key=lambda each: least[each])
    sentence = f"all policies keep Ω at 0.8 or above (the least is {low}'s, {least[low]:.3f})"
    conclusion.find("all_meet_throughput", least[low] >= 0.8, sentence)
    best = [max(each) for each in zip(*(at(policy, "profit") for policy in REACTIVE), strict=True)]
    won = sum(mine > other for mine, other in zip(ours, best, strict=True))
    sentence = f"look-ahead's profit is above that of every reactive model at {won} of {len(ours)} horizons"
    conclusion.find("lookahead_beats_reactive", won == len(ours), sentence)
    _find_rise(conclusion, horizons, ours)
    sentence = f"look-ahead earns up to 20 % more than CAF: {gain:.1%} at most here, on Γ - σμ"
    conclusion.find("up_to_20_percent", gain >= 0.10, sentence)
    chi = {policy: statistics.mean(at(policy, "chi")) for policy in ("lookahead", *REACTIVE)}
    second = min(REACTIVE, key=lambda each: chi[each])
    sentence = f"look-ahead is the most stable: χ {chi['lookahead']:.0f}, best reactive {second} {chi[second]:.0f}"
    conclusion.find("lookahead_most_stable", chi["lookahead"] < chi[second], sentence)
    worst = [min(REACTIVE, key=lambda each: at(each, "profit")[place]) for place in range(len(horizons))]
    sentence = f"WPP has the lowest profit: at {worst.count('wpp')} of {len(worst)} horizons"
    conclusion.find("wpp_worst", worst.count("wpp") > len(worst) / 2, sentence)
    apart = abs(caf[0] - at("waaf", "profit")[0]) / caf[0]
    conclusion.find("caf_like_waaf", apart < 0.02, f"CAF and WAAF have about the same profit: {apart:.1%} apart")
    titles = {"profit": "profit Γ - σμ", "chi": "stability χ", "omega": "relative throughput Ω"}
    conclusion.tables = tuple(
        sideways(f"Fig. 5: {title} by horizon (min)", horizons, {policy: at(policy, measure) for policy in SHOWN})
        for measure, title in titles.items()
    )
    return conclusion


def _find_rise(conclusion: Conclusion, horizons: list[int], curve: list[float]) -> None:
    ups = [later > earlier for earlier, later in pairwise(curve)]
    middle = min(2, len(curve) - 1)
    rise = f"{curve[0]:.4f} at {horizons[0]} min to {curve[middle]:.4f} at {horizons[middle]} min"
    sentence = f"look-ahead's profit rises with the horizon: from {rise}, {sum(ups[:2])} of 2 steps up"
    conclusion.find("profit_rises_to_30_min", all(ups[:2]), sentence)
    sentence = f"and on to {curve[-1]:.4f} at {horizons[-1]} min: {sum(ups)} of {len(ups)} steps up"
    conclusion.find("profit_rises_to_60_min", all(ups), sentence)


def error(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Fig. 6: look-ahead's profit by error and horizon."""
    from headgate.adaptation.look_ahead import PolicySettings

    def trials(world: Workload) -> Iterator[Row]:
        for error in sizes.errors:
            for minutes in sizes.horizons_min:
                ahead = PolicySettings(f"oracle:{error}", 60.0 * minutes)
                yield trial(world, "lookahead", ahead, error=error, horizon_min=minutes)

    return on_worlds(Study("error", trials, _conclude_error), seed, progress, sizes)


def _conclude_error(rows: Sequence[Row]) -> Conclusion:
    mean = means(rows, MEASURES, "error", "horizon_min")
    errors, horizons = _values(rows, "error"), _values(rows, "horizon_min")
    curves = {error: [mean[error, minutes]["profit"] for minutes in horizons] for error in errors}
    conclusion = Conclusion(
        {
            f"error_{round(100 * error)}_profit_{minutes}min": profit
            for error, curve in curves.items()
            for minutes, profit in zip(horizons, curve, strict=True)
        }
    )
    overall = [statistics.mean(curve) for curve in curves.values()]
    falls = all(later < earlier for earlier, later in pairwise(overall))
    sentence = f"profit falls as the error grows: {', '.join(f'{each:.4f}' for each in overall)} over all horizons"
    conclusion.find("profit_falls_with_error", falls, sentence)
    peaks = {error: horizons[curve.index(max(curve))] for error, curve in curves.items() if error > 0.10}
    inner = all(horizons[0] < peak < horizons[-1] for peak in peaks.values())
    sentence = "with an error above 10 % a longer horizon first helps, then hurts: the best is at "
    sentence += ", ".join(f"{peak} min with {error:.0%}" for error, peak in peaks.items())
    conclusion.find("long_horizon_hurts_above_10_percent", inner, sentence)
    by_error = {f"{error:.0%}": curve for error, curve in curves.items()}
    title = "Fig. 6: look-ahead's profit by error and horizon (min)"
    conclusion.tables = (sideways(title, horizons, by_error, "error"),)
    return conclusion


def bias(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Fig. 7: profit of those that use forecasts, by error, for three biases."""
    from headgate.adaptation.look_ahead import PolicySettings

    def trials(world: Workload) -> Iterator[Row]:
        for bias in BIASES:
            for error in sizes.errors:
                ahead = PolicySettings(f"oracle:{error}:{bias}", 60.0 * BIAS_HORIZON_MIN)
                for policy in BIASED:
                    yield trial(world, policy, ahead, error=error, bias=bias)

    return on_worlds(Study("bias", trials, _conclude_bias), seed, progress, sizes)


def _conclude_bias(rows: Sequence[Row]) -> Conclusion:
    mean = means(rows, MEASURES, "policy", "bias", "error")
    errors = _values(rows, "error")
    cases = [(bias, error) for bias in BIASES for error in errors]
    others = BIASED[1:]

    def profit(policy: str, bias: float) -> list[float]:
        return [mean[policy, bias, error]["profit"] for error in errors]

    def best_of(policies: Sequence[str], bias: float, error: float) -> float:
        return max((mean[each, bias, error]["profit"] for each in policies), default=-1.0)

    conclusion = Conclusion(
        {
            f"bias_{round(100 * bias)}_{policy}_profit_{round(100 * error)}": mean[policy, bias, error]["profit"]
            for policy in BIASED
            for bias, error in cases
        }
    )
    small = [case for case in cases if case[1] <= 0.10]
    wins = sum(mean["lookahead", *case]["profit"] > best_of(others, *case) for case in small)
    sentence = f"with errors up to 10 % look-ahead is best whatever the bias: in {wins} of {len(small)} cases"
    conclusion.find("lookahead_best_at_small_errors", wins == len(small), sentence)
    fair = 0
    for case in cases:
        able = [each for each in others if mean[each, *case]["omega"] >= 0.8]
        fair += mean["lookahead", *case]["profit"] > best_of(able, *case)
    conclusion.figures |= {
        "bias_wpo_omega_min": min(mean["wpo", *case]["omega"] for case in cases),
        "bias_lookahead_omega_min": min(mean["lookahead", *case]["omega"] for case in cases),
        "bias_lookahead_best_with_throughput": fair,
    }
    spread = {each: max(max(profit(each, b)) - min(profit(each, b)) for b in BIASES) for each in BIASED}
    sentence = f"WPA hardly depends on the error ({spread['wpa']:.4f}), look-ahead does ({spread['lookahead']:.4f})"
    conclusion.find("wpa_steady", spread["wpa"] < spread["lookahead"], sentence)
    over = {
        bias: statistics.mean(
            mine - other for mine, other in zip(profit("wpo", bias), profit("wpa", bias), strict=True)
        )
        for bias in BIASES
    }
    sentence = f"WPO beats WPA where forecasts are too low: by {over[-0.05]:.4f} in the mean"
    conclusion.find("wpo_beats_wpa_low_bias", over[-0.05] > 0, sentence)
    sentence = f"WPO does worse than WPA without a bias: by {-over[0.0]:.4f} in the mean"
    conclusion.find("wpo_poor_unbiased", over[0.0] < 0, sentence)
    last = sum(mean["wpp", *case]["profit"] <= min(mean[each, *case]["profit"] for each in BIASED) for case in cases)
    sentence = f"WPP does worst under all biases: in {last} of {len(cases)} cases"
    conclusion.find("wpp_worst_under_all", last == len(cases), sentence)
    conclusion.tables = tuple(
        sideways(
            f"Fig. 7: profit by error, {BIAS_HORIZON_MIN} min ahead, bias {bias:+.0%}",
            (f"{error:.0%}" for error in errors),
            {policy: profit(policy, bias) for policy in BIASED},
        )
        for bias in BIASES
    )
    return conclusion
