"""``headgate forecast``: what comes next in recorded series, and how good forecasts of them would have been."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import AsCsv, AsJson, Force, packages, print_tables, seconds, sentence_to_stderr, write_file

__all__ = ["forecast"]


def forecast(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Series as CSV or parquet: t_s and a column for each, or vm and t_s.")
    ],
    backtest: Annotated[
        bool, typer.Option("--backtest", help="Score how good forecasts from the file's past would have been.")
    ] = False,
    method: Annotated[
        list[str] | None, typer.Option(help="A forecaster; may be repeated. All with --backtest, else the ensemble.")
    ] = None,
    horizon: Annotated[int, typer.Option(min=1, max=10_000, help="How many steps ahead.")] = 12,
    step: Annotated[
        str | None, typer.Option(help="Forecast means over steps of this length; as measured if left out.")
    ] = None,
    season: Annotated[
        str | None, typer.Option(help="What repeats, such as 1d, or none; a day or an hour if the file is long enough.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Which column, where rows name their machine in vm.")] = None,
    series: Annotated[list[str] | None, typer.Option(help="Only this series; may be repeated.")] = None,
    warm_up: Annotated[
        int | None, typer.Option(min=1, help="Steps before the first forecast of a backtest; a third if left out.")
    ] = None,
    origins: Annotated[int, typer.Option(min=1, help="From how many moments a backtest forecasts, at most.")] = 500,
    plot: Annotated[Path | None, typer.Option(help="Draw it into this .svg, .png or .pdf file.")] = None,
    force: Force = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Forecast recorded series, such as rates or the performance of machines, or score how well that would have worked.

    Example: [bold]headgate forecast tweets.csv --step 5min --season 1d --backtest --plot backtest.svg[/bold]
    """
    with packages("forecasting", "forecasting"):
        from headgate.report.figures import check_picture
        from headgate.service import forecast_tables as tables
        from headgate.service.forecast import (
            ForecastRequest,
            all_at_least_0,
            foresee,
            load_table,
            past,
            score,
            season_steps,
        )
    if plot is not None:
        check_picture(plot.suffix)
    table = load_table(file, metric, None if step is None else seconds("--step", step), series or ())
    no_season = season is not None and season.strip().lower() == "none"
    given_s = None if season is None or no_season else seconds("--season", season)
    # A backtest must not look ahead: what it assumes of a series is read off what comes before its first forecast.
    known = past(table, warm_up) if backtest else table
    steps = 0 if no_season else season_steps(known, given_s)
    methods = tuple(method or (() if backtest else ("ensemble",)))
    request = ForecastRequest(horizon, steps, methods, all_at_least_0(known))
    if backtest:
        scores = score(table, request, warm_up, origins, _progress(as_json or as_csv))
        if plot is not None:
            write_file(plot, tables.draw_backtest(table, scores, plot.suffix), force)
        print_tables(tables.score_tables(table, request, scores), as_json, as_csv)
        return
    forecasts = foresee(table, request)
    if plot is not None:
        first = forecasts[0]
        write_file(plot, tables.draw_forecast(table, first.forecast, first.method, plot.suffix), force)
    for each in forecasts:
        for sentence in each.warnings:
            sentence_to_stderr(sentence)
    print_tables(tables.forecast_tables(table, request, forecasts), as_json, as_csv)


def _progress(quiet: bool) -> Callable[[str, int, int], None] | None:
    """Shows on one line of a terminal how far the backtest is."""
    if quiet or not sys.stderr.isatty():
        return None

    def show(method: str, done: int, of: int) -> None:
        typer.echo(f"\r  {method:<16} {done / of:>4.0%}\x1b[K", nl=False, err=True)
        if done == of:
            typer.echo("\r\x1b[K", nl=False, err=True)

    return show
