"""Pictures of ``headgate bench plan``, like DYN's Table 2 and Figs. 6 and 7."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate_benchmarks.figures import POLICY_SHADES, bars, dress, lines, picture
from headgate_benchmarks.study import Measured, Row

__all__ = ["plot"]

CASES = ("neither", "machines", "rates", "both")


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into a folder."""
    samples, drawn = measured.samples, []
    if "static" in samples:
        drawn.append(picture(folder / "plan-table2.png", (8.5, 3.8), lambda figure: _static(figure, samples)))
    if "adapted" in samples:
        rows = samples["adapted"]
        drawn.append(picture(folder / "plan-fig6.png", (12.5, 4.0), lambda figure: _adapted(figure, rows)))
    panels = [(draw, samples[key]) for draw, key in PANELS if key in samples]
    if panels:

        def scale(figure: Any) -> None:
            for axes, (draw, rows) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
                draw(axes, rows)

        drawn.append(picture(folder / "plan-fig7.png", (4.2 * len(panels), 4.0), scale))
    return drawn


def _static(figure: Any, samples: Any) -> None:
    axes = figure.subplots()
    rows = {row["planner"]: row for row in samples["static"]}
    series = {f"{name}: Θ = {row['theta']:.3f}": [row["omega"][case] for case in CASES] for name, row in rows.items()}
    bars(axes, [f"varying: {case}" for case in CASES], series, [POLICY_SHADES[name] for name in rows])
    width = 0.8 / len(rows)
    for place, (name, row) in enumerate(rows.items()):
        at = [case + (place - (len(rows) - 1) / 2) * width for case in range(len(CASES))]
        late = [row["omega_waiting"][case] for case in CASES]
        axes.bar(at, late, width * 0.45, color="#e2e8f0", alpha=0.75, label="" if place else "if what waits counts")
        theirs = samples["paper_table_2"].get("br" if name == "exact" else name)
        if theirs:
            label = "the paper (BR for exact)" if name == "exact" else ""
            axes.plot(at, theirs[1:], "_", color="black", markersize=12, markeredgewidth=1.5, label=label)
    axes.axhline(0.8, color="#475569", linestyle=":", linewidth=1)
    axes.set_ylim(0, 1.15)
    title = "Linear Road at 50 messages/s, deployed once (as Table 2)"
    dress(axes, title, y="relative throughput Ω", legend=3, at="upper right")


def _by_rate(axes: Any, rows: Sequence[Row], key: str, value: str, factor: float = 1.0) -> None:
    series = {}
    for name in dict.fromkeys(row[key] for row in rows):
        points = sorted((row["rate"], factor * row[value]) for row in rows if row[key] == name)
        series[name.removeprefix("static ")] = ([rate for rate, _ in points], [each for _, each in points])
    lines(axes, series, POLICY_SHADES)
    axes.set_xscale("log")


def _adapted(figure: Any, rows: Sequence[Row]) -> None:
    left, middle, right = figure.subplots(1, 3)
    static = [row for row in rows if row["policy"].startswith("static ")]
    adapted = [row for row in rows if row not in static]
    _by_rate(left, static, "policy", "omega")
    dress(left, "deployed once: Ω (as Fig. 6a)", "messages/s", legend=1)
    _by_rate(middle, adapted, "policy", "omega")
    dress(middle, "adapted: Ω (as Fig. 6b)", "messages/s", legend=2, at="lower right")
    _by_rate(right, adapted, "policy", "theta")
    dress(right, "adapted: profit Θ (as Fig. 6c)", "messages/s")
    right.axhline(0, color="#475569", linewidth=0.8)
    for axes in (left, middle):
        axes.axhline(0.8, color="#475569", linestyle=":", linewidth=1)
        axes.set_ylim(0, 1.05)


def _seconds(axes: Any, rows: Sequence[Row]) -> None:
    _by_rate(axes, rows, "planner", "cpu_s")
    axes.set_yscale("log")
    for name, text, rate, seconds, down in (
        ("ce", "paper: CE, SH", 8_000, 2.5, True),
        ("ga", "paper: GA, more than", 8_000, 1_000, False),
        ("br", "paper: BR, more than", 50, 10_000, False),
    ):
        axes.plot([rate], [seconds], "*", color=POLICY_SHADES[name], markersize=9)
        across, up = "left" if name == "br" else "right", "top" if down else "bottom"
        axes.annotate(text, (rate, seconds * (0.7 if down else 1.3)), ha=across, va=up, fontsize=8)
    axes.set_ylim(top=60_000)
    dress(axes, "CPU seconds to plan (as Fig. 7a)", "messages/s", legend=1, at="center left")


def _cores(axes: Any, rows: Sequence[Row]) -> None:
    _by_rate(axes, rows, "planner", "cores")
    axes.set_yscale("log")
    dress(axes, "cores of the plan (as Fig. 7b)", "messages/s")


def _saved(axes: Any, rows: Sequence[Row]) -> None:
    _by_rate(axes, rows, "policy", "saved", 100.0)
    axes.axhspan(6.9, 27.5, color="#94a3b8", alpha=0.2)
    axes.annotate("the paper's range", (0.98, 7.5), xycoords=("axes fraction", "data"), ha="right", fontsize=8)
    axes.set_ylim(bottom=0)
    dress(axes, "cost saved by alternates, % (as Fig. 7c)", "messages/s", legend=1, at="lower left")


PANELS = ((_seconds, "scale"), (_cores, "scale"), (_saved, "alternates"))
"""Of Fig. 7, with the samples that each needs."""
