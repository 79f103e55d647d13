"""Pictures of ``headgate bench lookahead``: PLAN-AHEAD's Figs. 5 to 7, on generated and recorded worlds, and more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from headgate_benchmarks.figures import POLICY_SHADES, bars, dress, lines, picture
from headgate_benchmarks.lookahead.trials import BLIND
from headgate_benchmarks.study import Measured, Row

__all__ = ["plot"]

GREY, BLUE, RED = "#94a3b8", "#12466b", "#c2410c"


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into a folder."""
    drawn = []
    for worlds in ("", "recorded_"):
        for part, (name, inches, draw) in PICTURES.items():
            rows = measured.samples.get(f"{worlds}{part}")
            if rows:
                wide = inches[0] or 4.2 * len({row["workload"] for row in rows})
                path = folder / f"lookahead-{worlds.replace('_', '-')}{name}.png"
                drawn.append(picture(path, (wide, inches[1]), lambda figure, rows=rows, draw=draw: draw(figure, rows)))  # type: ignore[misc]
    return drawn


def _mean(rows: Sequence[Row], measure: str, **like: Any) -> float:
    return mean(float(row[measure]) for row in rows if all(row[key] == value for key, value in like.items()))


def _values(rows: Sequence[Row], key: str) -> list[Any]:
    return sorted({row[key] for row in rows})


def _target(axes: Any) -> None:
    axes.axhline(0.8, color="#475569", linestyle=":", linewidth=1)


def _horizon(figure: Any, rows: Sequence[Row]) -> None:
    minutes = [each for each in _values(rows, "horizon_min") if each]
    titles = {"omega": "relative throughput Ω", "profit": "profit Γ - σμ", "chi": "steps outside of the band (χ)"}
    panels = figure.subplots(1, 3)
    for axes, (measure, title) in zip(panels, titles.items(), strict=True):
        series = {}
        for policy in dict.fromkeys(row["policy"] for row in rows):
            at = [0] * len(minutes) if policy in BLIND else minutes  # to these the horizon makes no difference
            series[policy] = (minutes, [_mean(rows, measure, policy=policy, horizon_min=each) for each in at])
        lines(axes, series, POLICY_SHADES)
        dress(axes, title, "prediction interval (min)")
    _target(panels[0])
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, fontsize=8, ncols=len(names), loc="outside upper center")


def _error(figure: Any, rows: Sequence[Row]) -> None:
    from matplotlib import colormaps

    axes = figure.subplots()
    errors, minutes = _values(rows, "error"), _values(rows, "horizon_min")
    shades = {
        f"error {error:.0%}": colormaps["YlOrRd"](0.25 + 0.7 * place / max(len(errors) - 1, 1))
        for place, error in enumerate(errors)
    }
    series = {
        name: (minutes, [_mean(rows, "profit", error=error, horizon_min=each) for each in minutes])
        for name, error in zip(shades, errors, strict=True)
    }
    lines(axes, series, shades)
    dress(axes, "look-ahead's profit Γ - σμ, by error and horizon", "prediction interval (min)", legend=1)


def _bias(figure: Any, rows: Sequence[Row]) -> None:
    biases, errors = sorted(_values(rows, "bias"), key=abs), _values(rows, "error")
    percent = [100 * each for each in errors]
    panels = figure.subplots(2, len(biases), sharex=True, sharey="row", squeeze=False)
    titles = {"profit": "profit Γ - σμ", "omega": "relative throughput Ω"}
    for row, (measure, title) in zip(panels, titles.items(), strict=True):
        for axes, bias in zip(row, biases, strict=True):
            series = {
                policy: (percent, [_mean(rows, measure, policy=policy, bias=bias, error=each) for each in errors])
                for policy in dict.fromkeys(row["policy"] for row in rows)
            }
            lines(axes, series, POLICY_SHADES)
            first = axes is panels[0][0]
            dress(axes, f"{title}, " + (f"bias {bias:+.0%}" if bias else "no bias"), "error (%)", legend=int(first))
            if measure == "omega":
                _target(axes)


def _forecast(figure: Any, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(row["workload"] for row in rows))
    kinds = list(dict.fromkeys((row["policy"], row["forecaster"]) for row in rows))
    panels = figure.subplots(2, 1, sharex=True)
    for axes, measure, title in zip(panels, ("profit", "omega"), ("profit Γ - σμ", "throughput Ω"), strict=True):
        series = {
            policy if forecaster == "none" else f"{policy}, {forecaster}": [
                _mean(rows, measure, workload=name, policy=policy, forecaster=forecaster) for name in names
            ]
            for policy, forecaster in kinds
        }
        bars(axes, [name.replace("_", "\n") for name in names], series, [RED, "#a16207", BLUE, "#7aa6c8", "#475569"])
        dress(axes, title, legend=len(kinds) if measure == "profit" else 0)
    _target(panels[1])
    panels[1].set_ylim(0.6, 1.0)


def _hindsight(figure: Any, rows: Sequence[Row]) -> None:
    """Profit beside the bound, and throughput over time beside that of the bound's plan."""
    worlds = list(dict.fromkeys(row["workload"] for row in rows))
    above, below = figure.subplots(2, len(worlds), squeeze=False)
    for profit, over_time, world in zip(above, below, worlds, strict=True):
        mine = {row["policy"]: row for row in rows if row["workload"] == world}
        shades = [BLUE if each in ("receding", "replayed") else GREY for each in mine]
        profit.bar(list(mine), [row["profit"] for row in mine.values()], color=shades)
        bound = mine["receding"]["bound"]
        profit.axhline(bound, color=RED, label="bound")
        profit.axhline(0.9 * bound, color=RED, linestyle=":", label="0.9 of it")
        profit.set_ylim(0.6 * bound, 1.02 * bound)
        profit.tick_params(axis="x", rotation=40)
        hours = [step / 12 for step in range(len(mine["receding"]["omegas"]))]
        over_time.plot(hours, mine["receding"]["bound_omega"], color=RED, linewidth=0.8, label="bound's plan")
        over_time.plot(hours, mine["receding"]["omegas"], color=BLUE, linewidth=0.9, label="receding")
        over_time.plot(hours, mine["exact"]["omegas"], color=GREY, linewidth=0.7, label="exact")
        over_time.set_ylim(0, 1.05)
        first = int(world == worlds[0])
        dress(profit, world, y="Γ - σμ" if first else "", legend=first, at="lower left")
        dress(over_time, x="hours", y="relative throughput" if first else "", legend=first)


PICTURES = {
    "horizon": ("fig5", (12.0, 3.8), _horizon),
    "error": ("fig6", (6.5, 4.0), _error),
    "bias": ("fig7", (12.0, 6.0), _bias),
    "forecast": ("forecast", (10.0, 6.0), _forecast),
    "hindsight": ("hindsight", (0.0, 7.0), _hindsight),
}
"""File, inches (a width of 0: by the number of worlds) and what draws it."""
