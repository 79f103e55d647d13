"""Pictures of ``headgate bench adapt``: what came, what waited, machines and value, by policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from headgate_benchmarks.figures import POLICY_SHADES, dress, picture
from headgate_benchmarks.study import Measured

__all__ = ["plot"]

PANELS = (("done_per_s", "rows/s done"), ("waiting", "rows waiting"), ("machines", "machines"), ("gamma", "value"))


def plot(measured: Measured, folder: Path) -> list[Path]:
    """A picture for each scenario."""
    rows = measured.samples["runs"]
    names = dict.fromkeys(row["scenario"] for row in rows)
    drawn = []
    for name in names:
        mine = [row for row in rows if row["scenario"] == name]
        drawn.append(picture(folder / f"adapt-{name}.png", (8.0, 9.0), partial(_lived, rows=mine)))
    drawn.append(picture(folder / "adapt-cost.png", (6.4, 4.4), lambda figure: _costs(figure, rows)))
    return drawn


def _lived(figure: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    panels = figure.subplots(len(PANELS), 1, sharex=True)
    for axes, (key, title) in zip(panels, PANELS, strict=True):
        for row in rows:
            seen, name = row["series"], row["policy"]
            axes.plot(seen["at_s"], seen[key], color=POLICY_SHADES.get(name, "#334155"), label=name, linewidth=1.2)
        if key == "done_per_s":
            seen = rows[0]["series"]
            axes.plot(seen["at_s"], seen["came_per_s"], ":", color="black", label="came", linewidth=1.0)
        axes.set_ylim(0)
        dress(axes, y=title, legend=4 if key == "done_per_s" else 0, at="upper right")
    panels[-1].set_xlabel("seconds")


def _costs(figure: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Cost against violations: left and below is better."""
    axes = figure.subplots()
    for row in rows:
        fields, name = row["fields"], row["policy"]
        axes.plot(fields["cost"], fields["violations"], "o", color=POLICY_SHADES.get(name, "#334155"))
        axes.annotate(f"{name} ({row['scenario']})", (fields["cost"], fields["violations"]), fontsize=7)
    dress(axes, x="cost (USD)", y="share of windows that are not as agreed")
