"""Latency against processors, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.report.figures import figure_bytes

__all__ = ["LatencyPoint", "draw_latency"]


LatencyPoint = tuple[int, float, float, float]
"""A number of processors, and mean, p95 and p99 with their best split."""


def draw_latency(
    title: str,
    points: Sequence[LatencyPoint],
    chosen: tuple[int, float],
    split: str,
    target_s: float | None,
    ending: str,
) -> bytes:
    """Mean, p95 and p99 for each number of processors, as a picture.

    The number that was ``chosen`` is marked at the latency that it was chosen for.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        processors, mean_s, p95_s, p99_s = zip(*points, strict=True)
        for label, style, shade, values in (
            ("p99", ":", "#7aa6c2", p99_s),
            ("p95", "--", "#4682a9", p95_s),
            ("mean", "-", "#12466b", mean_s),
        ):
            axes.plot(processors, values, style, marker=".", label=label, color=shade)
        if target_s is not None:
            axes.axhline(target_s, color="#c2410c", linewidth=1, linestyle="-.", label="limit")
        axes.plot([chosen[0]], [chosen[1]], "o", markersize=9, color="#c2410c", zorder=5)
        below = {"textcoords": "offset points", "xytext": (-4, -8), "ha": "right", "va": "top"}
        axes.annotate(f"{chosen[0]} processors\n{split}", chosen, color="#c2410c", **below)
        axes.set(
            title=title, xlabel="processors, each number split in its best way", ylabel="latency (s)", yscale="log"
        )
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.2)
        axes.grid(which="both")
        axes.legend()

    return figure_bytes(draw, ending, (7.2, 4.2))
