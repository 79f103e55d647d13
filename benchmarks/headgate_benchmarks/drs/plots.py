"""Pictures of ``headgate bench drs``: predicted against measured sojourns, and the policy at steps of the rate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate_benchmarks.figures import dress, picture
from headgate_benchmarks.study import Measured

__all__ = ["plot"]

SPARK, MMK, GREY = "#2f7fb8", "#d98c21", "#777777"
STACK = ("#2f7fb8", "#3a9a5b", "#d98c21")


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into a folder."""
    samples, drawn = measured.samples, []
    flows = {name: samples[name] for name in ("chain", "loop") if name in samples}
    if flows:
        wide = (6.0 * len(flows), 4.2)
        drawn.append(picture(folder / "drs-allocations.png", wide, lambda figure: _allocations(figure, flows)))
    if "steps" in samples:
        drawn.append(picture(folder / "drs-steps.png", (8, 6.4), lambda figure: _steps(figure, samples["steps"])))
    return drawn


def _allocations(figure: Any, flows: Mapping[str, Any]) -> None:
    """For each allocation the measured sojourn as a bar, and the models' predictions."""
    for axes, (name, flow) in zip(figure.subplots(1, len(flows), squeeze=False)[0], flows.items(), strict=True):
        rows = flow["allocations"]
        places = range(len(rows))
        axes.bar(places, [row["measured_s"] for row in rows], 0.6, color="#d5dde5", label="measured")
        for turn in range(2):
            seen = [row["turns_s"][turn] for row in rows]
            axes.plot(places, seen, "_", color=GREY, markersize=22, label=None if turn else "its two turns")
        axes.plot(places, [row["predicted_s"] for row in rows], "o", color=SPARK, label="micro-batch model")
        axes.plot(places, [row["mmk_s"] for row in rows], "s", color=MMK, label="M/M/k")
        axes.set_xticks(list(places), [row["allocation"] for row in rows])
        axes.set_ylim(0)
        title, first = f"{name}, {flow['rate_per_s']:g} rows/s", int(name == next(iter(flows)))
        dress(axes, title, "processors of extract:match:aggregate", "mean sojourn (s)", legend=first, at="upper left")


def _known(windows: Any, key: str) -> list[float]:
    return [float("nan") if window[key] is None else window[key] for window in windows]


def _steps(figure: Any, steps: Mapping[str, Any]) -> None:
    """Rate, sojourn and processors, window by window."""
    windows = steps["windows"]
    at = [window["at_s"] for window in windows]
    above, middle, below = figure.subplots(3, 1, sharex=True)
    above.step(at, [window["rate_per_s"] for window in windows], where="pre", color=GREY, label="rate")
    above.plot(at, _known(windows, "fitted_rate_per_s"), "o", color=SPARK, label="as fitted")
    middle.plot(at, _known(windows, "measured_s"), "o-", color=SPARK, label="measured")
    middle.axhline(steps["latency_max_s"], color="#c0392b", linewidth=1, label="$T_{max}$")
    split = list(zip(*(window["decided"] or window["allocation"] for window in windows), strict=True))
    below.stackplot(at, split, step="post", labels=["extract", "match", "aggregate"], colors=STACK, alpha=0.8)
    for axes, title in ((above, "rows/s"), (middle, "mean sojourn (s)"), (below, "processors")):
        for window in windows:
            if window["changed"]:
                axes.axvline(window["at_s"], color=GREY, linewidth=0.5, linestyle=":")
        axes.set_ylim(0)
        dress(axes, y=title, legend=3, at="upper left")
    below.set_xlabel("seconds; dotted: processors were changed")
