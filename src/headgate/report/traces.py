"""Traces of machines as pictures: the figures of PLAN-AHEAD's section II."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headgate.model.trace_statistics import LEVELS, MetricStatistics
from headgate.report.figures import SHADES, figure_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_changes", "draw_performance"]


def draw_performance(metrics: Sequence[MetricStatistics], ending: str) -> bytes:
    """Fig. 1: how performance is spread, how it changes, and how machines differ (the first metric)."""

    def draw(figure: Any) -> None:
        spread, change, machines = figure.subplots(1, 3, width_ratios=(1, 1, 1.4))
        _curves(spread, metrics, lambda each: each.performance)
        spread.axvline(0.8, color="#c2410c", linewidth=1, linestyle="-.")
        spread.set_title("(a) performance, all machines and times")
        spread.set(xlabel="performance (1 is best)", ylabel="share of measurements")
        _changes(change, metrics, "(b) change to the next slot")
        _boxes(machines, metrics[0])

    return figure_bytes(draw, ending, (13, 4.2))


def draw_changes(metrics: Sequence[MetricStatistics], ending: str) -> bytes:
    """Fig. 2: how much performance changes from slot to slot, metric by metric."""

    def draw(figure: Any) -> None:
        _changes(figure.add_subplot(), metrics, "change of performance to the next slot")

    return figure_bytes(draw, ending, (6.4, 4.2))


def _curves(axes: Axes, metrics: Sequence[MetricStatistics], values: Any) -> None:
    for place, each in enumerate(metrics):
        axes.plot(values(each), LEVELS[: len(values(each))], color=SHADES[place % len(SHADES)], label=each.metric)
    axes.grid(True)
    axes.set_ylim(0, 1)
    axes.legend()


def _changes(axes: Axes, metrics: Sequence[MetricStatistics], title: str) -> None:
    known = [each for each in metrics if each.changes]
    _curves(axes, known, lambda each: [100 * change for change in each.changes])
    axes.axvline(20, color="#c2410c", linewidth=1, linestyle="-.")
    axes.set(title=title, xlim=(0, 100), xlabel="change (%)", ylabel="share of slots")


def _boxes(axes: Axes, metric: MetricStatistics) -> None:
    keys = ("label", "whislo", "q1", "med", "q3", "whishi")
    boxes = [
        dict(zip(keys, (box.vm, box.low, box.q1, box.median, box.q3, box.high), strict=True)) | {"fliers": []}
        for box in metric.boxes
    ]
    axes.bxp(boxes, showfliers=False, medianprops={"color": "#c2410c"})
    axes.set_title(f"(c) {metric.metric} by machine, first {len(boxes)} of {metric.machines}")
    axes.set(ylim=(0, 1.02), xticks=[], xlabel="machines")
    axes.grid(axis="y")
