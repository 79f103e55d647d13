"""``headgate bench lookahead``: what looking ahead brings, by how far and how well one sees.

Part ``horizon`` is PLAN-AHEAD's Fig. 5 (relative throughput, profit and stability by the length of the prediction
interval, with a perfect oracle), ``error`` its Fig. 6 (profit by error and horizon), ``bias`` its Fig. 7 (profit by
error for three biases), all on the paper's world: ten stages of three tasks, three waves, machines as on EC2. Each of
the paper's findings is a figure ``finding_...``, 1 if it was reproduced and 0 if not, with a sentence in the table.
Part ``forecast`` has forecasters of ours in the oracle's place, on four realistic workloads and recorded ones where the
folder of shared data is, ``hindsight`` the bound on every policy and how near they come to it. Profit is the paper's,
Γ - σμ, and a mean over some seeds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from headgate.bench.lookahead_hindsight import hindsight_part
from headgate.bench.measured import Measured

if TYPE_CHECKING:
    from headgate.bench.lookahead_workloads import Workload
    from headgate.service.ahead import Ahead

__all__ = ["PARTS", "run"]

Progress = Callable[[str], None]
Row = dict[str, Any]
Part = tuple[dict[str, Any], dict[str, Any], list[str]]

SEEDS = 3
HORIZONS_MIN = (10, 20, 30, 40, 50, 60)
ERRORS = (0.0, 0.05, 0.10, 0.15, 0.20)
BIASES = (0.0, -0.05, 0.05)
BLIND = ("caf", "waaf")
"""Reactive models that use no forecast."""

REACTIVE = ("caf", "waaf", "wpa", "wpo", "wpp")
SHOWN = ("lookahead", "lookahead-plain", *REACTIVE)
STEP_S = 300.0
BIAS_HORIZON_MIN = 20
"""As in the paper."""

FORECASTERS = ("ensemble", "naive")
FORECAST_HORIZON_MIN = 60
FORECAST_SEEDS = 2


def run(seed: int, progress: Progress) -> Measured:
    """All parts."""
    figures: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    lines: list[str] = []
    for part in (_horizon, _error, _bias, _forecast):
        found, raw, told = part(seed, progress)
        figures |= found
        samples |= raw
        lines += [*told, ""]
    last = hindsight_part(seed, progress)
    figures |= last.figures
    samples |= last.samples
    lines.append(last.table)
    findings = [key for key in figures if key.startswith("finding_")]
    figures["findings"], figures["findings_reproduced"] = len(findings), sum(int(figures[key]) for key in findings)
    return _measured(figures, samples, lines)


def _measured(figures: dict[str, Any], samples: dict[str, Any], lines: list[str]) -> Measured:
    rounded = {key: round(value, 5) if isinstance(value, float) else value for key, value in figures.items()}
    return Measured(rounded, samples, "\n".join(lines) + "\n")


def _alone(part: Callable[[int, Progress], Part]) -> Callable[[int, Progress], Measured]:
    return lambda seed, progress: _measured(*part(seed, progress))


def _row(workload: Workload, policy: str, ahead: Ahead, **about: Any) -> Row:
    from headgate.service.policies import make_policy
    from headgate.simulation.dataflow.simulator import simulate

    seen = simulate(workload.setting, make_policy(policy, workload.setting, ahead))
    summary = seen.summary()
    assert seen.break_even is not None
    profit = seen.break_even.times(workload.setting.hours).net_value(summary.gamma, summary.cost)
    return {
        "workload": workload.name,
        "policy": policy,
        **about,
        "omega": summary.omega,
        "gamma": summary.gamma,
        "cost": summary.cost,
        "theta": summary.theta,
        "profit": profit,
        "chi": summary.left_band,
        "in_band": summary.in_band,
        "within": summary.within,
        "changes": summary.changes,
    }


def _means(rows: Iterable[Row], *by: str) -> dict[tuple[Any, ...], dict[str, float]]:
    """Means over seeds."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    measures = ("omega", "gamma", "cost", "theta", "profit", "chi", "in_band", "changes")
    return {
        key: {name: statistics.mean(row[name] for row in members) for name in measures}
        for key, members in groups.items()
    }


class _Findings:
    """The paper's findings, one by one."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}
        self.lines: list[str] = []

    def add(self, name: str, holds: bool, sentence: str) -> None:
        self.figures[f"finding_{name}"] = int(holds)
        self.lines.append(f"  {'reproduced' if holds else 'NOT reproduced':<15} {sentence}")


def _horizon(seed: int, progress: Progress) -> Part:
    """Fig. 5: with a perfect oracle, by the length of the prediction interval."""
    from headgate.bench.lookahead_workloads import paper
    from headgate.service.ahead import Ahead

    rows: list[Row] = []
    for turn in range(SEEDS):
        world = paper(seed + turn)
        progress(f"horizon: world {turn + 1} of {SEEDS}")
        rows += [_row(world, policy, Ahead("oracle", STEP_S), horizon_min=0) for policy in BLIND]
        rows += [
            _row(world, policy, Ahead("oracle", 60.0 * minutes), horizon_min=minutes)
            for minutes in HORIZONS_MIN
            for policy in ("lookahead", "lookahead-plain", "wpa", "wpo", "wpp")
        ]
    mean = _means(rows, "policy", "horizon_min")

    def at(policy: str, measure: str) -> list[float]:
        return [mean[policy, 0 if policy in BLIND else each][measure] for each in HORIZONS_MIN]

    figures: dict[str, Any] = {}
    for policy in SHOWN:
        for measure in ("omega", "profit", "chi", "changes"):
            for place, minutes in enumerate(HORIZONS_MIN):
                if policy not in BLIND or place == 0:
                    when = "" if policy in BLIND else f"_{minutes}min"
                    figures[f"horizon_{policy}_{measure}{when}"] = at(policy, measure)[place]
    ours, found = at("lookahead", "profit"), _Findings()
    best = [max(at(policy, "profit")[place] for policy in REACTIVE) for place in range(len(HORIZONS_MIN))]
    gain = max(mine / other - 1 for mine, other in zip(ours, at("caf", "profit"), strict=True))
    least = {policy: min(at(policy, "omega")) for policy in ("lookahead", *REACTIVE)}
    low = min(least, key=lambda each: least[each])
    told = f"all policies keep Ω at 0.8 or above (the least is {low}'s, {least[low]:.3f})"
    found.add("all_meet_throughput", least[low] >= 0.8, told)
    won = sum(mine > other for mine, other in zip(ours, best, strict=True))
    told = f"look-ahead's profit is above that of every reactive model at {won} of {len(ours)} horizons"
    found.add("lookahead_beats_reactive", won == len(ours), told)
    for policy, name in (("lookahead-plain", "plain_"), ("lookahead", "")):
        curve = at(policy, "profit")
        ups = [later > earlier for earlier, later in pairwise(curve)]
        rise = f"{curve[0]:.4f} at {HORIZONS_MIN[0]} min to {curve[2]:.4f} at {HORIZONS_MIN[2]} min"
        told = f"the profit of {policy} rises with the horizon: from {rise}, {sum(ups[:2])} of 2 steps up"
        found.add(f"{name}profit_rises_to_30_min", all(ups[:2]), told)
        told = f"and on to {curve[-1]:.4f} at {HORIZONS_MIN[-1]} min: {sum(ups)} of {len(ups)} steps up"
        found.add(f"{name}profit_rises_to_60_min", all(ups), told)
    told = f"look-ahead earns up to 20 % more than CAF: {gain:.1%} at most here, on Γ - σμ"
    found.add("up_to_20_percent", gain >= 0.10, told)
    chi = {policy: statistics.mean(at(policy, "chi")) for policy in ("lookahead", *REACTIVE)}
    second = min((policy for policy in REACTIVE), key=lambda each: chi[each])
    told = (
        f"look-ahead is the most stable: χ {chi['lookahead']:.0f}, the best reactive model {second} {chi[second]:.0f}"
    )
    found.add("lookahead_most_stable", chi["lookahead"] < chi[second], told)
    worst = [min(REACTIVE, key=lambda each: at(each, "profit")[place]) for place in range(len(HORIZONS_MIN))]
    told = f"WPP has the lowest profit: at {worst.count('wpp')} of {len(worst)} horizons"
    found.add("wpp_worst", worst.count("wpp") > len(worst) / 2, told)
    apart = abs(at("caf", "profit")[0] - at("waaf", "profit")[0]) / at("caf", "profit")[0]
    found.add("caf_like_waaf", apart < 0.02, f"CAF and WAAF have about the same profit: {apart:.1%} apart")
    figures["horizon_gain_over_caf"] = gain
    lines = ["Fig. 5: profit Γ - σμ by horizon (minutes), with a perfect oracle", _head()]
    lines += [_line(policy, at(policy, "profit")) for policy in SHOWN]
    lines += ["stability χ", *(_line(policy, at(policy, "chi")) for policy in SHOWN)]
    lines += ["relative throughput Ω", *(_line(policy, at(policy, "omega")) for policy in SHOWN)]
    return figures | found.figures, {"horizon": rows, "horizon_findings": found.lines}, [*lines, *found.lines]


def _head(labels: Iterable[Any] = HORIZONS_MIN) -> str:
    return f"  {'':<16}" + "".join(f"{label:>10}" for label in labels)


def _line(label: str, values: Iterable[float]) -> str:
    return f"  {label:<16}" + "".join(f"{value:>10.4g}" for value in values)


def _error(seed: int, progress: Progress) -> Part:
    """Fig. 6: look-ahead's profit by error and horizon."""
    from headgate.bench.lookahead_workloads import paper
    from headgate.service.ahead import Ahead

    rows: list[Row] = []
    for turn in range(SEEDS):
        world = paper(seed + turn)
        progress(f"error: world {turn + 1} of {SEEDS}")
        for error in ERRORS:
            for minutes in HORIZONS_MIN:
                ahead = Ahead(f"oracle:{error}", 60.0 * minutes)
                rows.append(_row(world, "lookahead", ahead, error=error, horizon_min=minutes))
    mean = _means(rows, "error", "horizon_min")
    figures: dict[str, Any] = {
        f"error_{round(100 * error)}_profit_{minutes}min": mean[error, minutes]["profit"]
        for error in ERRORS
        for minutes in HORIZONS_MIN
    }
    found = _Findings()
    overall = [statistics.mean(mean[error, minutes]["profit"] for minutes in HORIZONS_MIN) for error in ERRORS]
    falls = all(later < earlier for earlier, later in pairwise(overall))
    told = f"profit falls as the error grows: {', '.join(f'{each:.4f}' for each in overall)} over all horizons"
    found.add("profit_falls_with_error", falls, told)
    large = [error for error in ERRORS if error > 0.10]
    peaks = {}
    for error in large:
        curve = [mean[error, minutes]["profit"] for minutes in HORIZONS_MIN]
        peaks[error] = HORIZONS_MIN[max(range(len(curve)), key=lambda place: curve[place])]
    inner = all(HORIZONS_MIN[0] < peak < HORIZONS_MIN[-1] for peak in peaks.values())
    told = "with an error above 10 % a longer horizon first helps, then hurts: the best is at "
    told += ", ".join(f"{peak} min with {error:.0%}" for error, peak in peaks.items())
    found.add("long_horizon_hurts_above_10_percent", inner, told)
    lines = ["Fig. 6: look-ahead's profit by error and horizon (minutes)", _head()]
    lines += [_line(f"{error:.0%}", (mean[error, each]["profit"] for each in HORIZONS_MIN)) for error in ERRORS]
    return figures | found.figures, {"error": rows, "error_findings": found.lines}, [*lines, *found.lines]


def _bias(seed: int, progress: Progress) -> Part:
    """Fig. 7: profit of those that use forecasts, by error, for three biases."""
    from headgate.bench.lookahead_workloads import paper
    from headgate.service.ahead import Ahead

    policies = ("lookahead", "wpa", "wpo", "wpp")
    rows: list[Row] = []
    for turn in range(SEEDS):
        world = paper(seed + turn)
        progress(f"bias: world {turn + 1} of {SEEDS}")
        for bias in BIASES:
            for error in ERRORS:
                for policy in policies:
                    ahead = Ahead(f"oracle:{error}:{bias}", 60.0 * BIAS_HORIZON_MIN)
                    rows.append(_row(world, policy, ahead, error=error, bias=bias))
    mean = _means(rows, "policy", "bias", "error")
    figures: dict[str, Any] = {
        f"bias_{round(100 * bias)}_{policy}_profit_{round(100 * error)}": mean[policy, bias, error]["profit"]
        for policy in policies
        for bias in BIASES
        for error in ERRORS
    }

    def profit(policy: str, bias: float) -> list[float]:
        return [mean[policy, bias, error]["profit"] for error in ERRORS]

    found = _Findings()
    small = [place for place, error in enumerate(ERRORS) if error <= 0.10]
    wins = sum(
        profit("lookahead", bias)[place] > max(profit(each, bias)[place] for each in policies[1:])
        for bias in BIASES
        for place in small
    )
    told = f"with errors up to 10 % look-ahead is best whatever the bias: in {wins} of {len(small) * len(BIASES)} cases"
    found.add("lookahead_best_at_small_errors", wins == len(small) * len(BIASES), told)
    cases = [(bias, error) for bias in BIASES for error in ERRORS]
    fair = 0
    for bias, error in cases:
        able = [each for each in policies[1:] if mean[each, bias, error]["omega"] >= 0.8]
        others = [mean[each, bias, error]["profit"] for each in able]
        fair += mean["lookahead", bias, error]["profit"] > max(others, default=-1.0)
    figures["bias_wpo_omega_min"] = min(mean["wpo", *case]["omega"] for case in cases)
    figures["bias_lookahead_omega_min"] = min(mean["lookahead", *case]["omega"] for case in cases)
    figures["bias_lookahead_best_with_throughput"] = fair
    told_fair = (
        f"  (of those that keep Ω at 0.8, look-ahead is best in {fair} of {len(cases)} cases; WPO does not keep it: "
    )
    told_fair += (
        f"{figures['bias_wpo_omega_min']:.2f} at the least, look-ahead {figures['bias_lookahead_omega_min']:.2f})"
    )
    spread = {each: max(max(profit(each, b)) - min(profit(each, b)) for b in BIASES) for each in policies}
    told = f"WPA hardly depends on the error ({spread['wpa']:.4f} at most), look-ahead does ({spread['lookahead']:.4f})"
    found.add("wpa_steady", spread["wpa"] < spread["lookahead"], told)
    over = [mine - other for mine, other in zip(profit("wpo", -0.05), profit("wpa", -0.05), strict=True)]
    told = f"WPO beats WPA where forecasts are too low: by {statistics.mean(over):.4f} in the mean"
    found.add("wpo_beats_wpa_low_bias", statistics.mean(over) > 0, told)
    over = [mine - other for mine, other in zip(profit("wpo", 0.0), profit("wpa", 0.0), strict=True)]
    told = f"WPO does worse than WPA without a bias: by {-statistics.mean(over):.4f} in the mean"
    found.add("wpo_poor_unbiased", statistics.mean(over) < 0, told)
    last = sum(
        profit("wpp", bias)[place] <= min(profit(each, bias)[place] for each in policies)
        for bias in BIASES
        for place in range(len(ERRORS))
    )
    told = f"WPP does worst under all biases: in {last} of {len(ERRORS) * len(BIASES)} cases"
    found.add("wpp_worst_under_all", last == len(ERRORS) * len(BIASES), told)
    lines = [f"Fig. 7: profit by error, {BIAS_HORIZON_MIN} min ahead"]
    for bias in BIASES:
        lines += [f"bias {bias:+.0%}", _head(f"{error:.0%}" for error in ERRORS)]
        lines += [_line(policy, profit(policy, bias)) for policy in policies]
    return figures | found.figures, {"bias": rows, "bias_findings": found.lines}, [*lines, *found.lines, told_fair]


def _forecast(seed: int, progress: Progress) -> Part:
    """Forecasters of ours: look-ahead's profit against CAF's."""
    from headgate.bench.lookahead_recorded import recorded
    from headgate.bench.lookahead_workloads import realistic
    from headgate.service.ahead import Ahead

    rows: list[Row] = []
    made: list[str] = []
    for turn in range(FORECAST_SEEDS):
        worlds = [*realistic(seed + turn), *recorded(seed + turn, progress if turn == 0 else _silent)]
        made = [each.name for each in realistic(seed + turn)]
        for world in worlds:
            progress(f"forecast: {world.name}, world {turn + 1} of {FORECAST_SEEDS}")
            rows += [_row(world, policy, Ahead(), forecaster="none") for policy in BLIND]
            for forecaster in (*FORECASTERS, "oracle"):
                ahead = Ahead(forecaster, 60.0 * FORECAST_HORIZON_MIN, STEP_S * world.season, world.history)
                rows.append(_row(world, "lookahead", ahead, forecaster=forecaster))
    mean = _means(rows, "workload", "policy", "forecaster")
    names = list(dict.fromkeys(row["workload"] for row in rows))
    figures: dict[str, Any] = {}
    lines = [
        f"Θ with forecasters of ours, {FORECAST_HORIZON_MIN} min ahead, means of {FORECAST_SEEDS} worlds (Ω beside)"
    ]
    shown = [("caf", "none"), ("waaf", "none"), *(("lookahead", each) for each in (*FORECASTERS, "oracle"))]
    lines.append(_head(f"{p if p != 'lookahead' else f}" for p, f in shown).replace(f"{'':<16}", f"{'':<18}"))
    for name in names:
        found = [mean[name, policy, forecaster] for policy, forecaster in shown]
        lines.append(f"  {name:<18}" + "".join(f"{each['theta']:>10.4f}" for each in found))
        lines.append(f"  {'':<18}" + "".join(f"{each['omega']:>10.3f}" for each in found))
        for (policy, forecaster), each in zip(shown, found, strict=True):
            label = policy if policy != "lookahead" else f"lookahead_{forecaster}"
            for measure in ("theta", "omega", "chi", "changes"):
                figures[f"forecast_{name}_{label}_{measure}"] = each[measure]
    beaten = {
        name: mean[name, "lookahead", FORECASTERS[0]]["theta"] > mean[name, "caf", "none"]["theta"] for name in names
    }
    figures |= {
        "forecast_workloads": len(made),
        "forecast_beats_caf": sum(beaten[name] for name in made),
        "forecast_recorded_workloads": len(names) - len(made),
        "forecast_recorded_beats_caf": sum(beaten[name] for name in names if name not in made),
        "forecast_omega_min": min(mean[name, "lookahead", FORECASTERS[0]]["omega"] for name in names),
    }
    told = f"look-ahead with the {FORECASTERS[0]} is above CAF on {figures['forecast_beats_caf']} of {len(made)}"
    if len(names) > len(made):
        told += f", and on {figures['forecast_recorded_beats_caf']} of {len(names) - len(made)} recorded ones"
    return figures, {"forecast": rows}, [*lines, told]


def _silent(step: str) -> None:
    del step


PARTS: Mapping[str, Callable[[int, Progress], Measured]] = {
    "horizon": _alone(_horizon),
    "error": _alone(_error),
    "bias": _alone(_bias),
    "forecast": _alone(_forecast),
    "hindsight": hindsight_part,
}
