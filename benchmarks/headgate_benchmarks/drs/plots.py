"""Pictures of ``headgate bench drs``: predicted against measured sojourns, and the policy at steps of the rate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate_benchmarks.measured import Measured, prepare_plots

__all__ = ["plot"]

SPARK, MMK, GREY = "#2f7fb8", "#d98c21", "#777777"
STACK = ("#2f7fb8", "#3a9a5b", "#d98c21")


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into a folder; raises :class:`InputError` where matplotlib is not installed."""
    prepare_plots(folder)
    drawn = []
    if {"chain", "loop"} & measured.samples.keys():
        drawn.append(_allocations(measured.samples, folder / "drs-allocations.png"))
    if "steps" in measured.samples:
        drawn.append(_steps(measured.samples["steps"], folder / "drs-steps.png"))
    return drawn


def _allocations(samples: Mapping[str, Any], path: Path) -> Path:
    """For each allocation the measured sojourn as a bar, and what the models say of it."""
    from matplotlib import pyplot

    names = [name for name in ("chain", "loop") if name in samples]
    figure, axes = pyplot.subplots(1, len(names), figsize=(6 * len(names), 4.2), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        rows = samples[name]["allocations"]
        places = range(len(rows))
        axis.bar(places, [row["measured_s"] for row in rows], 0.6, color="#d5dde5", label="measured")
        for turn in range(2):
            seen = [row["turns_s"][turn] for row in rows]
            axis.plot(places, seen, "_", color=GREY, markersize=22, label=None if turn else "its two turns")
        axis.plot(places, [row["predicted_s"] for row in rows], "o", color=SPARK, label="micro-batch model")
        axis.plot(places, [row["mmk_s"] for row in rows], "s", color=MMK, label="M/M/k")
        axis.set_xticks(list(places), [row["allocation"] for row in rows])
        axis.set_ylim(0)
        axis.set_title(f"{name}, {samples[name]['rate_per_s']:g} rows/s", fontsize=10)
        axis.set_xlabel("processors of extract:match:aggregate")
        axis.set_ylabel("mean sojourn (s)")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].legend(frameon=False, fontsize=8, loc="upper left")
    return _saved(figure, path)


def _steps(found: Mapping[str, Any], path: Path) -> Path:
    """Rate, sojourn and processors, window by window."""
    from matplotlib import pyplot

    windows = found["windows"]
    at = [window["at_s"] for window in windows]
    figure, (above, middle, below) = pyplot.subplots(3, 1, figsize=(8, 6.4), sharex=True)
    above.step(at, [window["rate_per_s"] for window in windows], where="pre", color=GREY, label="rate")
    fitted = [window["fitted_rate_per_s"] for window in windows]
    above.plot(at, [float("nan") if rate is None else rate for rate in fitted], "o", color=SPARK, label="as fitted")
    above.set_ylabel("rows/s")
    sojourns = [float("nan") if window["measured_s"] is None else window["measured_s"] for window in windows]
    middle.plot(at, sojourns, "o-", color=SPARK, label="measured")
    middle.axhline(found["latency_max_s"], color="#c0392b", linewidth=1, label="$T_{max}$")
    middle.set_ylabel("mean sojourn (s)")
    split = list(zip(*(window["decided"] or window["allocation"] for window in windows), strict=True))
    below.stackplot(at, split, step="post", labels=["extract", "match", "aggregate"], colors=STACK, alpha=0.8)
    for window in windows:
        if window["changed"]:
            for axis in (above, middle, below):
                axis.axvline(window["at_s"], color=GREY, linewidth=0.5, linestyle=":")
    below.set_ylabel("processors")
    below.set_xlabel("seconds; dotted: processors were changed")
    for axis in (above, middle, below):
        axis.set_ylim(0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8, loc="upper left", ncols=3)
    return _saved(figure, path)


def _saved(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path
