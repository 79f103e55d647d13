"""Forecasts and scores of forecasters as tables."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.forecasting.backtest import Scores
from headgate.forecasting.table import SeriesTable
from headgate.model.table import Table, TableColumn
from headgate.report.forecasts import draw_backtest, draw_forecast
from headgate.service.forecast import ForecastRequest, Foreseen

__all__ = ["draw_backtest", "draw_forecast", "forecast_tables", "score_tables"]

MOST_SHOWN = 10
"""Series that people see; programs get all."""

_FORECASTER, _SERIES = TableColumn("forecaster", "forecaster"), TableColumn("series", "series")
_INPUT = (
    _SERIES,
    TableColumn("steps", "steps", form=","),
    TableColumn("step_s", "step", "s", "g"),
    TableColumn("gaps", "gaps", form=","),
    TableColumn("season_steps", "season", "steps"),
    TableColumn("horizon", "ahead", "steps"),
    TableColumn("non_negative"),
)
_EXPECTED = (
    _FORECASTER,
    _SERIES,
    *(TableColumn(name, title, form=",.5g") for name, title in (("last", "last"), ("next", "next"), ("end", "at end"))),
    TableColumn("low", "5 % at end", form=",.5g"),
    TableColumn("high", "95 % at end", form=",.5g"),
)
_SCORES = (
    _FORECASTER,
    TableColumn("mase", "MASE", form=".3f"),
    TableColumn("pinball", "pinball", form=".3f"),
    *(TableColumn(f"within_{share}", f"within {share} %", form=".1%") for share in (50, 80, 90)),
    TableColumn("origins"),
    TableColumn("mase_by_step"),
)


def _input(table: SeriesTable, request: ForecastRequest) -> Table:
    row = {
        "series": len(table.names),
        "steps": table.steps,
        "step_s": table.step_s,
        "gaps": int((table.values != table.values).sum()),
        "season_steps": request.season,
        "horizon": request.horizon,
        "non_negative": request.non_negative,
    }
    return Table("Input", _INPUT, (row,))


def score_tables(table: SeriesTable, request: ForecastRequest, scores: Sequence[Scores]) -> tuple[Table, Table]:
    """What was forecast, and how good each forecaster was, best first."""
    rows = []
    for each in sorted(scores, key=lambda one: (one.mase != one.mase, one.mase)):
        facts = each.as_dict()
        within = {f"within_{share}": facts["coverage"][f"0.{share // 10}"] for share in (50, 80, 90)}
        rows.append({**facts, **within})
    against = "a season before" if request.season else "one step before"
    note = f"MASE: mean error relative to repeating the value {against}; forecasts from {scores[0].origins} moments."
    return _input(table, request), Table("Backtest", _SCORES, tuple(rows), (note,))


def forecast_tables(table: SeriesTable, request: ForecastRequest, forecasts: Sequence[Foreseen]) -> tuple[Table, ...]:
    """What was forecast, the ends of it for people, and every step with its quantiles for programs."""
    expected = [_expected(table, each, row) for each in forecasts for row in range(min(len(table.names), MOST_SHOWN))]
    hidden = len(table.names) - MOST_SHOWN
    notes = (f"{hidden} more series; --json and --csv have all.",) if hidden > 0 else ()
    levels = [f"{level:g}" for level in forecasts[0].forecast.levels]
    columns = tuple(map(TableColumn, ("forecaster", "series", "t_s", "mean", *(f"q{level}" for level in levels))))
    steps = tuple(row for each in forecasts for row in _steps(table, each, levels))
    return (
        _input(table, request),
        Table("Expected", _EXPECTED, tuple(expected), notes),
        Table("Forecasts", columns, steps),
    )


def _expected(table: SeriesTable, each: Foreseen, row: int) -> dict[str, object]:
    known = table.values[row][table.values[row] == table.values[row]]
    mean = each.forecast.mean[row]
    return {
        "forecaster": each.method,
        "series": table.names[row],
        "last": float(known[-1]),
        "next": float(mean[0]),
        "end": float(mean[-1]),
        "low": float(each.forecast.at(0.05)[row, -1]),
        "high": float(each.forecast.at(0.95)[row, -1]),
    }


def _steps(table: SeriesTable, each: Foreseen, levels: Sequence[str]) -> list[dict[str, object]]:
    start_s = table.start_s + table.steps * table.step_s
    return [
        {
            "forecaster": each.method,
            "series": name,
            "t_s": start_s + step * table.step_s,
            "mean": float(each.forecast.mean[row, step]),
            **{f"q{level}": float(q) for level, q in zip(levels, each.forecast.quantiles[row, step], strict=True)},
        }
        for row, name in enumerate(table.names)
        for step in range(each.forecast.mean.shape[1])
    ]
