"""Simulated runs as a picture: what came and went, how well it was served, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headgate.model.arrays import Floats
from headgate.report.figures import SHADES, figure_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SimulatedRun", "draw_runs"]


class SimulatedRun(Protocol):
    """What is drawn of a run: arrays of intervals × replications; :class:`headgate.simulation.run.Run` has them."""

    @property
    def policy(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def currency(self) -> str: ...
    @property
    def throughput_band(self) -> tuple[float, float]: ...
    @property
    def hours(self) -> Floats: ...
    @property
    def omega(self) -> Floats: ...
    @property
    def mu(self) -> Floats: ...
    @property
    def theta(self) -> Floats | None: ...
    @property
    def input_per_s(self) -> Floats: ...
    @property
    def output_per_s(self) -> Floats: ...
    @property
    def cores(self) -> Floats: ...
    @property
    def queues(self) -> Floats: ...
    @property
    def demand(self) -> Floats:
        """Intervals × replications × shared pools; no pools where tasks have cores of their own."""

    @property
    def usable(self) -> Floats: ...


def draw_runs(runs: Sequence[SimulatedRun], ending: str) -> bytes:
    """Runs of one setting, one colour for each policy; where there are replications, their median and 90 % of them."""

    def draw(figure: Any) -> None:
        rows = ["rates", "omega", "backlog", "cores", "cost"] + (["theta"] if runs[0].theta is not None else [])
        rows += ["pool"] if runs[0].demand.size else []
        panels = dict(zip(rows, figure.subplots(len(rows), 1, sharex=True), strict=True))
        _rates(panels["rates"], runs)
        _omega(panels["omega"], runs)
        _each(panels["backlog"], runs, lambda run: run.queues.sum(axis=2), "messages\nwaiting")
        panels["backlog"].set_yscale("symlog", linthresh=10)
        _each(panels["cores"], runs, lambda run: run.cores, "cores\nat work")
        _each(panels["cost"], runs, lambda run: run.mu, f"cost\n({runs[0].currency})")
        for name in ("rates", "backlog", "cores", "cost"):
            panels[name].set_ylim(bottom=0)
        if "theta" in panels:
            _each(panels["theta"], runs, lambda run: run.theta, "profit Θ\nso far")
            panels["theta"].axhline(0, color="#475569", linewidth=0.8)
            # In the first paid hour profit is far below what it settles to.
            settled = [run.theta[min(len(run.theta) // 4, 60) :] for run in runs if run.theta is not None]
            low, high = min(float(each.min()) for each in settled), max(float(each.max()) for each in settled)
            margin = 0.1 * max(high - low, 0.05)
            panels["theta"].set_ylim(low - margin, max(high, 0.0) + margin)
        if "pool" in panels:
            _pool(panels["pool"], runs)
        panels[rows[-1]].set(xlabel="hours", xlim=(0, runs[0].hours[-1]))
        panels["rates"].set_title(runs[0].title)
        for axes in panels.values():
            axes.grid(True)
        figure.align_ylabels()

    return figure_bytes(draw, ending, (8.5, 9.5))


def _spread(axes: Axes, hours: Floats, values: Floats, colour: str, label: str | None, style: str = "-") -> None:
    middle = np.median(values, axis=1)
    axes.plot(hours, middle, style, color=colour, label=label, linewidth=1.4)
    if values.shape[1] > 1:
        low, high = np.quantile(values, [0.05, 0.95], axis=1)
        axes.fill_between(hours, low, high, color=colour, alpha=0.15, linewidth=0)


def _each(axes: Axes, runs: Sequence[SimulatedRun], values: Any, label: str) -> None:
    for place, run in enumerate(runs):
        _spread(axes, run.hours, values(run), SHADES[place % len(SHADES)], None)
    axes.set_ylabel(label)


def _rates(axes: Axes, runs: Sequence[SimulatedRun]) -> None:
    _spread(axes, runs[0].hours, runs[0].input_per_s, "#475569", "in", ":")
    for place, run in enumerate(runs):
        _spread(axes, run.hours, run.output_per_s, SHADES[place % len(SHADES)], f"out, {run.policy}")
    axes.set_ylabel("messages\nper s")
    axes.legend(ncols=4, loc="lower right", bbox_to_anchor=(1.0, 0.98))


def _pool(axes: Axes, runs: Sequence[SimulatedRun]) -> None:
    """Usable reference cores of all pools, and dotted what is asked of them."""
    _each(axes, runs, lambda run: run.usable.sum(axis=2), "cores: usable,\nasked (dotted)")
    for place, run in enumerate(runs):
        _spread(axes, run.hours, run.demand.sum(axis=2), SHADES[place % len(SHADES)], None, ":")
    axes.set_ylim(bottom=0)


def _omega(axes: Axes, runs: Sequence[SimulatedRun]) -> None:
    low, high = runs[0].throughput_band
    axes.axhspan(low, min(high, 1.0), color="#4d7c0f", alpha=0.15, linewidth=0)
    _each(axes, runs, lambda run: run.omega, "relative\nthroughput Ω")
    axes.set_ylim(0, 1.05)
