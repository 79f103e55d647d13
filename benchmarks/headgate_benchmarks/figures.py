"""What the pictures of benchmarks have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headgate.report.figures import figure_bytes

__all__ = ["POLICY_SHADES", "bars", "dress", "lines", "picture"]

POLICY_SHADES = {
    "lookahead": "#12466b",
    "caf": "#c2410c",
    "waaf": "#a16207",
    "wpa": "#4d7c0f",
    "wpo": "#7c3aed",
    "wpp": "#be185d",
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


def picture(path: Path, inches: tuple[float, float], draw: Callable[[Any], None]) -> Path:
    """Draw a figure into a file whose folder is made if need be; raises :class:`InputError` without matplotlib."""
    content = figure_bytes(draw, path.suffix, inches)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def dress(axes: Any, title: str = "", x: str = "", y: str = "", *, legend: int = 0, at: str = "best") -> None:
    """Titles, a grid and, with ``legend`` columns, a legend."""
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, alpha=0.25)
    axes.set_axisbelow(True)
    if legend:
        axes.legend(frameon=False, fontsize=8, ncols=legend, loc=at)


def lines(axes: Any, series: Mapping[str, tuple[Sequence[Any], Sequence[Any]]], shades: Mapping[str, Any]) -> None:
    """A line with points for each series of x and y; the look-ahead of a study is wider."""
    for name, (x, y) in series.items():
        wide = 2.2 if name == "lookahead" else 1.2
        axes.plot(x, y, "o-", color=shades.get(name, "black"), label=name, markersize=3.5, linewidth=wide)


def bars(axes: Any, groups: Sequence[str], series: Mapping[str, Sequence[float | None]], shades: Sequence[str]) -> None:
    """Groups of bars side by side, one of each series; a value of ``None`` has none."""
    width = 0.8 / max(len(series), 1)
    for number, ((name, values), shade) in enumerate(zip(series.items(), shades, strict=False)):
        there = {
            place + (number - (len(series) - 1) / 2) * width: value
            for place, value in enumerate(values)
            if value is not None
        }
        axes.bar(list(there), list(there.values()), width * 0.9, label=name, color=shade)
    axes.set_xticks(range(len(groups)), groups)
