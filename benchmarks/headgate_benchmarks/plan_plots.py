"""Pictures of ``headgate bench plan``, like DYN's Table 2 and Figs. 6 and 7."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate_benchmarks.measured import Measured, prepare_plots

__all__ = ["plot"]

COLOURS = {
    "exact": "#12466b",
    "br": "#475569",
    "ga": "#7c3aed",
    "ce": "#c2410c",
    "sh": "#a16207",
    "ds2": "#4d7c0f",
    "flink": "#0e7490",
    "cpu": "#be185d",
    "static-peak": "#94a3b8",
}
CASES = ("neither", "machines", "rates", "both")


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into a folder; raises :class:`InputError` where matplotlib is not installed."""
    prepare_plots(folder)
    samples = measured.samples
    drawn = []
    if "static" in samples:
        drawn.append(_static(samples, folder / "plan-table2.png"))
    if "adapted" in samples:
        drawn.append(_adapted(samples["adapted"], folder / "plan-fig6.png"))
    if "scale" in samples or "alternates" in samples:
        drawn.append(_scale(samples, folder / "plan-fig7.png"))
    return drawn


def _finish(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, alpha=0.25)
        axes.tick_params(labelsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def _static(samples: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.5, 3.8))
    names = list(samples["static"])
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        ours = [samples["static"][name]["omega"][case] for case in CASES]
        at = [case + (place - (len(names) - 1) / 2) * width for case in range(len(CASES))]
        axes.bar(
            at, ours, width * 0.9, color=COLOURS[name], label=f"{name}: Θ = {samples['static'][name]['theta']:.3f}"
        )
        late = [samples["static"][name]["omega_waiting"][case] for case in CASES]
        axes.bar(at, late, width * 0.45, color="#e2e8f0", alpha=0.75, label="" if place else "if what waits counts")
        theirs = samples["paper_table_2"].get("br" if name == "exact" else name)
        if theirs:
            axes.plot(at, theirs[1:], "_", color="black", markersize=12, markeredgewidth=1.5)
    axes.plot([], [], "_", color="black", markersize=12, label="the paper (BR for exact)")
    axes.axhline(0.8, color="#475569", linestyle=":", linewidth=1)
    axes.set_xticks(range(len(CASES)), [f"varying: {case}" for case in CASES])
    axes.set_ylabel("relative throughput Ω")
    axes.set_title("Linear Road at 50 messages/s, deployed once (as Table 2)", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper right")
    axes.set_ylim(0, 1.15)
    return _finish(figure, path)


def _lines(axes: Any, rows: Sequence[dict[str, Any]], key: str, value: str, style: str = "o-") -> None:
    for name in dict.fromkeys(row[key] for row in rows):
        chosen = sorted((row["rate"], row[value]) for row in rows if row[key] == name and row.get(value) is not None)
        short = str(name).removeprefix("static ") if str(name) != "static-peak" else str(name)
        axes.plot(
            [rate for rate, _ in chosen],
            [each for _, each in chosen],
            style,
            color=COLOURS.get(short, "black"),
            label=short,
            markersize=4,
            linewidth=1.2,
        )
    axes.set_xscale("log")
    axes.set_xlabel("messages/s", fontsize=9)


def _adapted(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    from matplotlib import pyplot

    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(12.5, 4.0))
    static = [row for row in rows if str(row["policy"]).startswith("static ")]
    adapted = [row for row in rows if row not in static]
    _lines(left, static, "policy", "omega")
    left.set_title("deployed once: Ω (as Fig. 6a)", loc="left", fontsize=10)
    _lines(middle, adapted, "policy", "omega")
    middle.set_title("adapted: Ω (as Fig. 6b)", loc="left", fontsize=10)
    _lines(right, adapted, "policy", "theta")
    right.set_title("adapted: profit Θ (as Fig. 6c)", loc="left", fontsize=10)
    right.axhline(0, color="#475569", linewidth=0.8)
    for axes in (left, middle):
        axes.axhline(0.8, color="#475569", linestyle=":", linewidth=1)
        axes.set_ylim(0, 1.05)
    left.legend(frameon=False, fontsize=8)
    middle.legend(frameon=False, fontsize=8, ncols=2, loc="lower right")
    return _finish(figure, path)


def _scale(samples: Any, path: Path) -> Path:
    """The panels of Fig. 7 for which something was measured."""
    from matplotlib import pyplot

    rows = samples.get("scale", [])
    saved = [dict(row, percent=100 * row["saved"]) for row in samples.get("alternates", [])]
    panels = [panel for panel, there in ((_seconds, rows), (_cores, rows), (_saved, saved)) if there]
    figure, axes = pyplot.subplots(1, len(panels), figsize=(4.2 * len(panels), 4.0), squeeze=False)
    for panel, place in zip(panels, axes[0], strict=True):
        panel(place, saved if panel is _saved else rows)
    return _finish(figure, path)


def _seconds(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    _lines(axes, rows, "planner", "cpu_s")
    axes.set_yscale("log")
    for name, told, rate, seconds in (
        ("ce", "paper: CE, SH", 8_000, 2.5),
        ("ga", "paper: GA, more than", 8_000, 1_000),
        ("br", "paper: BR, more than", 50, 10_000),
    ):
        axes.plot([rate], [seconds], "*", color=COLOURS[name], markersize=9)
        below = name == "ce"
        at, va = (seconds * (0.7 if below else 1.3), "top" if below else "bottom")
        axes.annotate(told, (rate, at), ha="left" if name == "br" else "right", va=va, fontsize=8)
    axes.set_ylim(top=60_000)
    axes.set_title("CPU seconds to plan (as Fig. 7a)", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 0.84))


def _cores(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    _lines(axes, rows, "planner", "cores")
    axes.set_yscale("log")
    axes.set_title("cores of the plan (as Fig. 7b)", loc="left", fontsize=10)


def _saved(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    _lines(axes, rows, "policy", "percent")
    axes.axhspan(6.9, 27.5, color="#94a3b8", alpha=0.2)
    axes.annotate(
        "the paper's range", (0.98, 7.5), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8
    )
    axes.set_title("cost saved by alternates, % (as Fig. 7c)", loc="left", fontsize=10)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
