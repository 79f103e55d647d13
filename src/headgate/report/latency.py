"""Latency against processors, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.report.figures import figure_bytes

__all__ = ["LatencyPoint", "draw_latency"]


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """What the best split of so many processors gives."""

    processors: int
    mean_s: float
    p95_s: float
    p99_s: float


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
        processors = [point.processors for point in points]
        for label, style, shade, values in (
            ("p99", ":", "#7aa6c2", [point.p99_s for point in points]),
            ("p95", "--", "#4682a9", [point.p95_s for point in points]),
            ("mean", "-", "#12466b", [point.mean_s for point in points]),
        ):
            axes.plot(processors, values, style, marker=".", label=label, color=shade)
        if target_s is not None:
            axes.axhline(target_s, color="#c2410c", linewidth=1, linestyle="-.", label="limit")
        axes.plot([chosen[0]], [chosen[1]], "o", markersize=9, color="#c2410c", zorder=5)
        axes.annotate(
            f"{chosen[0]} processors\n{split}",
            chosen,
            textcoords="offset points",
            xytext=(-4, -8),
            ha="right",
            va="top",
            color="#c2410c",
        )
        axes.set_xlabel("processors, each number split in its best way")
        axes.set_ylabel("latency (s)")
        axes.set_title(title, loc="left")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.2)
        axes.grid(True, which="both", alpha=0.25)
        axes.legend(frameon=False)

    return figure_bytes(draw, ending, (7.2, 4.2))
