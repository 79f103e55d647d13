"""Pictures of ``headgate bench plan``, like DYN's Table 2 and Figs. 6 and 7."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate.bench.measured import Measured, prepare_plots

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
        axes.bar(
            at, late, width * 0.45, color="white", alpha=0.65, label="" if place else "if what waits counts (light)"
        )
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
    from matplotlib import pyplot

    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(12.5, 4.0))
    rows = samples.get("scale", [])
    _lines(left, rows, "planner", "cpu_s")
    left.set_yscale("log")
    left.plot([8_000], [2.5], "*", color=COLOURS["ce"], markersize=9)
    left.annotate("paper: CE, SH", (8_000, 2.5), ha="right", va="bottom", fontsize=8)
    left.plot([8_000], [1_000], "*", color=COLOURS["ga"], markersize=9)
    left.annotate("paper: GA, more than", (8_000, 1_000), ha="right", va="bottom", fontsize=8)
    left.plot([50], [10_000], "*", color=COLOURS["br"], markersize=9)
    left.annotate("paper: BR, more than", (50, 10_000), ha="left", va="bottom", fontsize=8)
    left.set_title("CPU seconds to plan (as Fig. 7a)", loc="left", fontsize=10)
    left.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 0.86))
    _lines(middle, rows, "planner", "cores")
    middle.set_yscale("log")
    middle.set_title("cores of the plan (as Fig. 7b)", loc="left", fontsize=10)
    saved = [dict(row, percent=100 * row["saved"]) for row in samples.get("alternates", [])]
    _lines(right, saved, "policy", "percent")
    right.axhspan(6.9, 27.5, color="#94a3b8", alpha=0.2)
    right.annotate(
        "the paper's range", (0.98, 26), xycoords=("axes fraction", "data"), ha="right", va="top", fontsize=8
    )
    right.set_title("cost saved by alternates, % (as Fig. 7c)", loc="left", fontsize=10)
    if saved:
        right.legend(frameon=False, fontsize=8)
    for axes, there in ((left, rows), (middle, rows), (right, saved)):
        axes.set_visible(bool(there))
    return _finish(figure, path)
