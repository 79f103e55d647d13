"""Pictures of ``headgate bench lookahead``: PLAN-AHEAD's Figs. 5 to 7, on generated and recorded worlds, and more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from headgate_benchmarks.lookahead.hindsight import plot_hindsight
from headgate_benchmarks.measured import Measured, prepare_plots

__all__ = ["plot"]

COLOURS = {
    "lookahead": "#12466b",
    "lookahead-plain": "#7aa6c8",
    "caf": "#c2410c",
    "waaf": "#a16207",
    "wpa": "#4d7c0f",
    "wpo": "#7c3aed",
    "wpp": "#be185d",
}
BLIND = ("caf", "waaf")
"""Policies that do not look ahead, so that the horizon makes no difference to them."""


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into a folder; raises :class:`InputError` where matplotlib is not installed."""
    prepare_plots(folder)
    parts: Mapping[str, Callable[[Any, Path], Path]] = {
        "horizon": _horizon,
        "error": _error,
        "bias": _bias,
        "forecast": _forecast,
    }
    names = {"horizon": "fig5", "error": "fig6", "bias": "fig7", "forecast": "forecast"}
    drawn = [
        draw(measured.samples[f"{worlds}{part}"], folder / f"lookahead-{worlds.replace('_', '-')}{names[part]}.png")
        for worlds in ("", "recorded_")
        for part, draw in parts.items()
        if f"{worlds}{part}" in measured.samples
    ]
    return drawn + plot_hindsight(measured, folder)


def _mean(rows: Sequence[Any], measure: str, **like: Any) -> float:
    return mean(float(row[measure]) for row in rows if all(row[key] == value for key, value in like.items()))


def _values(rows: Sequence[Any], key: str) -> list[Any]:
    return sorted({row[key] for row in rows})


def _finish(figure: Any, path: Path, top: float = 1.0) -> Path:
    from matplotlib import pyplot

    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, alpha=0.25)
        axes.tick_params(labelsize=8)
    figure.tight_layout(rect=(0, 0, 1, top))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def _horizon(rows: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(12, 3.8))
    minutes = [each for each in _values(rows, "horizon_min") if each]
    labels = {"omega": "relative throughput Ω", "profit": "profit Γ - σμ", "chi": "steps outside of the band (χ)"}
    for axes, (measure, label) in zip(panels, labels.items(), strict=True):
        for policy, colour in COLOURS.items():
            at = [0] * len(minutes) if policy in BLIND else minutes
            values = [_mean(rows, measure, policy=policy, horizon_min=each) for each in at]
            style = "--" if policy in BLIND else "-"
            wide = 2.2 if policy == "lookahead" else 1.3
            axes.plot(minutes, values, style, marker=".", color=colour, linewidth=wide, label=policy)
        axes.set_title(label, loc="left", fontsize=10)
        axes.set_xlabel("prediction interval (min)", fontsize=9)
    panels[0].axhline(0.8, color="#475569", linestyle=":", linewidth=1)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, fontsize=8, ncols=len(names), loc="upper center")
    return _finish(figure, path, top=0.94)


def _error(rows: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.5, 4))
    errors, minutes = _values(rows, "error"), _values(rows, "horizon_min")
    for place, error in enumerate(errors):
        values = [_mean(rows, "profit", error=error, horizon_min=each) for each in minutes]
        shade = 0.25 + 0.7 * place / max(len(errors) - 1, 1)
        axes.plot(minutes, values, marker=".", color=pyplot.get_cmap("YlOrRd")(shade), label=f"error {error:.0%}")
    axes.set_xlabel("prediction interval (min)", fontsize=9)
    axes.set_title("look-ahead's profit Γ - σμ, by error and horizon", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    return _finish(figure, path)


def _bias(rows: Any, path: Path) -> Path:
    from matplotlib import pyplot

    biases, errors = sorted(_values(rows, "bias"), key=abs), _values(rows, "error")
    figure, panels = pyplot.subplots(2, len(biases), figsize=(12, 6), sharex=True, sharey="row", squeeze=False)
    labels = {"profit": "profit Γ - σμ", "omega": "relative throughput Ω"}
    for line, (measure, label) in zip(panels, labels.items(), strict=True):
        for axes, bias in zip(line, biases, strict=True):
            for policy in dict.fromkeys(row["policy"] for row in rows):
                values = [_mean(rows, measure, policy=policy, bias=bias, error=each) for each in errors]
                wide = 2.2 if policy == "lookahead" else 1.3
                at = [100 * each for each in errors]
                axes.plot(at, values, marker=".", color=COLOURS[policy], linewidth=wide, label=policy)
            axes.set_title(f"{label}, " + (f"bias {bias:+.0%}" if bias else "no bias"), loc="left", fontsize=10)
            axes.set_xticks(at)
    for axes in panels[1]:
        axes.axhline(0.8, color="#475569", linestyle=":", linewidth=1)
        axes.set_xlabel("error (%)", fontsize=9)
    panels[0][0].legend(frameon=False, fontsize=8)
    return _finish(figure, path)


def _forecast(rows: Any, path: Path) -> Path:
    from matplotlib import pyplot

    names = list(dict.fromkeys(row["workload"] for row in rows))
    kinds = list(dict.fromkeys((row["policy"], row["forecaster"]) for row in rows))
    colours = ["#c2410c", "#a16207", "#12466b", "#7aa6c8", "#475569", "#94a3b8"]
    figure, panels = pyplot.subplots(2, 1, figsize=(10, 6), sharex=True)
    width = 0.8 / len(kinds)
    for place, (policy, forecaster) in enumerate(kinds):
        at = [name + (place - (len(kinds) - 1) / 2) * width for name in range(len(names))]
        label = policy if forecaster == "none" else f"{policy}, {forecaster}"
        for axes, measure in zip(panels, ("profit", "omega"), strict=True):
            values = [_mean(rows, measure, workload=name, policy=policy, forecaster=forecaster) for name in names]
            axes.bar(at, values, width * 0.9, color=colours[place % len(colours)], label=label)
    panels[0].set_title("profit Γ - σμ", loc="left", fontsize=10)
    panels[1].set_title("relative throughput Ω", loc="left", fontsize=10)
    panels[1].axhline(0.8, color="#475569", linestyle=":", linewidth=1)
    panels[1].set_ylim(0.6, 1.0)
    panels[1].set_xticks(range(len(names)), [name.replace("_", "\n") for name in names])
    panels[0].legend(frameon=False, fontsize=8, ncols=len(kinds), loc="upper center", bbox_to_anchor=(0.5, 1.3))
    return _finish(figure, path)
