"""Forecasts as pictures: what was, what is expected and how surely, and how good forecasters have been."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.forecasting.backtest import Scores
from headgate.forecasting.forecast import Forecast
from headgate.forecasting.table import SeriesTable
from headgate.report.figures import SHADES, figure_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_backtest", "draw_forecast"]

MOST_SERIES = 6
UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def draw_forecast(table: SeriesTable, forecast: Forecast, method: str, ending: str) -> bytes:
    """The end of each series (the first six) and its forecast, with the intervals that hold 50 and 90 %."""
    shown = min(len(table.names), MOST_SERIES)

    def draw(figure: Any) -> None:
        columns = 1 if shown == 1 else 2
        axes = np.atleast_1d(figure.subplots(-(-shown // columns), columns, squeeze=False)).ravel()
        for row in range(shown):
            _series(axes[row], table, forecast, row, table.steps)
            axes[row].set_title(table.names[row])
        for empty in axes[shown:]:
            empty.set_visible(False)
        lines, labels = axes[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper right", ncols=4)
        left = f", the first {shown} of {len(table.names)} series" if shown < len(table.names) else ""
        figure.suptitle(f"{method}: {forecast.mean.shape[1]} steps ahead{left}", fontsize=11, x=0.01, ha="left")

    rows = -(-shown // 2) if shown > 1 else 1
    return figure_bytes(draw, ending, (11, 1.0 + 2.9 * rows))


def draw_backtest(table: SeriesTable, scores: Sequence[Scores], ending: str) -> bytes:
    """Error by distance, coverage of the intervals, and the best forecaster's last forecast compared with what came."""
    best = min(scores, key=lambda each: (np.isnan(each.mase), each.mase))

    def draw(figure: Any) -> None:
        grid = figure.add_gridspec(2, 2, height_ratios=(1, 1.1))
        _errors(figure.add_subplot(grid[0, 0]), scores)
        _coverage(figure.add_subplot(grid[0, 1]), scores)
        axes = figure.add_subplot(grid[1, :])
        row = int(np.nanargmin(np.where(np.isnan(best.mase_by_series), np.inf, best.mase_by_series)))
        _series(axes, table, best.last, row, best.last_origin, came=True)
        axes.set_title(f"{best.name}: its last forecast of {table.names[row]}")
        lines, labels = axes.get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower right", ncols=5)

    return figure_bytes(draw, ending, (11, 7.5))


def _errors(axes: Axes, scores: Sequence[Scores]) -> None:
    for place, each in enumerate(scores):
        steps = range(1, len(each.mase_by_step) + 1)
        axes.plot(
            steps, each.mase_by_step, color=SHADES[place % len(SHADES)], label=each.name, marker=".", linewidth=1.2
        )
    axes.axhline(1.0, color="#94a3b8", linewidth=1, linestyle=":")
    axes.set(title="error by distance (MASE, less is better)", xlabel="steps ahead")
    axes.set_ylim(bottom=0)
    axes.grid(True)


def _coverage(axes: Axes, scores: Sequence[Scores]) -> None:
    shares = sorted(scores[0].coverage)
    axes.plot([0.4, 1.0], [0.4, 1.0], color="#94a3b8", linewidth=1, linestyle=":")
    for place, each in enumerate(scores):
        shown = [each.coverage[share] for share in shares]
        shade = SHADES[place % len(SHADES)]
        axes.plot(shares, shown, color=shade, marker="o", markersize=4, linewidth=1.2, label=each.name)
    axes.set(title="intervals: nominal and actual coverage", xlim=(0.45, 0.95), ylim=(0, 1.02))
    axes.set(xlabel="nominal share", ylabel="share of values within")
    axes.grid(True)
    axes.legend(loc="lower right", ncols=2)


def _series(axes: Axes, table: SeriesTable, forecast: Forecast, row: int, origin: int, came: bool = False) -> None:
    ahead = forecast.mean.shape[1]
    begin = max(0, origin - max(8 * ahead, 60))
    unit_s, unit = next((each for each in UNITS if (origin + ahead - begin) * table.step_s >= 2 * each[0]), UNITS[-1])
    seconds = table.start_s + np.arange(table.steps + ahead) * table.step_s
    at = (seconds - table.start_s) / unit_s
    axes.plot(at[begin:origin], table.values[row, begin:origin], color="#475569", linewidth=1, label="observed")
    future = at[origin : origin + ahead]
    for low, high, opacity in ((0.05, 0.95, 0.15), (0.25, 0.75, 0.25)):
        message = f"{100 * (high - low):.0f} % interval"
        below, above = forecast.at(low)[row], forecast.at(high)[row]
        axes.fill_between(future, below, above, color=SHADES[0], alpha=opacity, linewidth=0, label=message)
    axes.plot(future, forecast.mean[row], color=SHADES[0], linewidth=1.6, label="mean expected")
    if came:
        axes.plot(future, table.values[row, origin : origin + ahead], color=SHADES[1], linewidth=1.2, label="what came")
    axes.set_xlabel(unit)
    axes.grid(True)
