"""``headgate forecast``: what comes next in recorded series, and how good forecasts of them would have been."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import print_json, sentence_to_stderr, write_file
from headgate.cli.span import seconds
from headgate.errors import missing_package, printable

if TYPE_CHECKING:
    from headgate.forecasting.backtest import Scores
    from headgate.forecasting.table import SeriesTable
    from headgate.service.forecast import Asked, Foreseen

__all__ = ["forecast"]

MOST_SHOWN = 10


def forecast(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Series as CSV or parquet: t_s and a column for each, or vm and t_s.")
    ],
    backtest: Annotated[
        bool, typer.Option("--backtest", help="Tell how good forecasts from the file's past would have been.")
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
    plot: Annotated[Path | None, typer.Option(help="Draw it into this .svg or .png file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Forecast recorded series, rates or the performance of machines, or tell how well that would have worked.

    Example: [bold]headgate forecast tweets.csv --step 5min --season 1d --backtest --plot backtest.svg[/bold]
    """
    try:
        if plot is not None:
            import matplotlib  # noqa: F401 (better missed now than when the picture is drawn)

        from headgate.report.figures import check_ending
        from headgate.service.forecast import Asked, all_at_least_0, foresee, load_table, score, season_steps
    except ModuleNotFoundError as error:
        raise missing_package("NO_FORECASTING", "forecasting", error, "forecasting") from None
    if plot is not None:
        check_ending(plot.suffix.lower())
    table = load_table(file, metric, None if step is None else seconds("--step", step), series or ())
    no_season = season is not None and season.strip().lower() == "none"
    given_s = None if season is None or no_season else seconds("--season", season)
    steps = 0 if no_season else season_steps(table, given_s)
    methods = tuple(method or (() if backtest else ("ensemble",)))
    asked = Asked(horizon, steps, methods, all_at_least_0(table))
    if backtest:
        scores = score(table, asked, warm_up, origins, _progress(as_json))
        if plot is not None:
            from headgate.report.forecasts import draw_backtest

            write_file(plot, draw_backtest(table, scores, plot.suffix.lower()), force)
        _show_scores(table, asked, scores, as_json)
        return
    found = foresee(table, asked)
    if plot is not None:
        from headgate.report.forecasts import draw_forecast

        picture = draw_forecast(table, found[0].forecast, found[0].method, plot.suffix.lower())
        write_file(plot, picture, force)
    _show_forecasts(table, asked, found, as_json)


def _progress(as_json: bool) -> Any:
    """Where the backtest is, on one line of a terminal."""
    if as_json or not sys.stderr.isatty():
        return None

    def told(method: str, done: int, of: int) -> None:
        typer.echo(f"\r  {method:<16} {done / of:>4.0%}\x1b[K", nl=False, err=True)
        if done == of:
            typer.echo("\r\x1b[K", nl=False, err=True)

    return told


def _about(table: SeriesTable, asked: Asked) -> str:
    count = f"{len(table.names)} series of {table.steps:,} steps of {table.step_s:g} s"
    season = f"a season of {asked.season} steps" if asked.season else "no season"
    gaps = int((table.values != table.values).sum())
    holes = f", {gaps:,} gaps" if gaps else ""
    return f"{count}{holes}, {season}, {asked.horizon} steps ahead"


def _facts(table: SeriesTable, asked: Asked) -> dict[str, Any]:
    return {
        "series": len(table.names),
        "steps": table.steps,
        "step_s": table.step_s,
        "season_steps": asked.season,
        "horizon": asked.horizon,
        "non_negative": asked.non_negative,
    }


def _show_scores(table: SeriesTable, asked: Asked, scores: Sequence[Scores], as_json: bool) -> None:
    if as_json:
        print_json({**_facts(table, asked), "backtest": [each.as_dict() for each in scores]})
        return
    lines = [_about(table, asked), ""]
    lines.append(f"  {'forecaster':<16}{'MASE':>8}{'pinball':>9}{'within 50 %':>13}{'80 %':>8}{'90 %':>8}")
    for each in sorted(scores, key=lambda one: (one.mase != one.mase, one.mase)):
        facts = each.as_dict()
        numbers = "".join(f"{'-' if value is None else f'{value:.3f}':>{width}}" for value, width in (
            (facts["mase"], 8), (facts["pinball"], 9)))  # fmt: skip
        shares = facts["coverage"]
        within = "".join(
            f"{'-' if shares[key] is None else f'{shares[key]:.1%}':>{width}}"
            for key, width in (("0.5", 13), ("0.8", 8), ("0.9", 8))
        )
        lines.append(f"  {each.name:<16}{numbers}{within}")
    against = "a season before" if asked.season else "one step before"
    lines.append("")
    lines.append(f"MASE: mean error over that of taking the value {against}; from {scores[0].origins} moments")
    typer.echo("\n".join(lines))


def _show_forecasts(table: SeriesTable, asked: Asked, found: Sequence[Foreseen], as_json: bool) -> None:
    for each in found:
        for sentence in each.complaints:
            sentence_to_stderr(sentence)
    if as_json:
        print_json({**_facts(table, asked), "forecasts": [_forecast_facts(table, each) for each in found]})
        return
    lines = [_about(table, asked)]
    for each in found:
        lines += ["", f"  {each.method:<24}{'last':>12}{'next':>12}{'in the end':>12}{'90 % of it within':>28}"]
        for row, name in enumerate(table.names[:MOST_SHOWN]):
            known = table.values[row][table.values[row] == table.values[row]]
            mean, end = each.forecast.mean[row], each.forecast.mean.shape[1] - 1
            low, high = each.forecast.at(0.05)[row, end], each.forecast.at(0.95)[row, end]
            numbers = f"{known[-1]:>12,.5g}{mean[0]:>12,.5g}{mean[end]:>12,.5g}"
            lines.append(printable(f"  {name[:24]:<24}{numbers}{f'{low:,.5g} to {high:,.5g}':>28}"))
    if len(table.names) > MOST_SHOWN:
        lines.append(f"  and {len(table.names) - MOST_SHOWN} more; --json has all")
    typer.echo("\n".join(lines))


def _forecast_facts(table: SeriesTable, found: Foreseen) -> dict[str, Any]:
    levels = [f"{level:g}" for level in found.forecast.levels]
    begin = table.start_s + table.steps * table.step_s
    return {
        "forecaster": found.method,
        "complaints": list(found.complaints),
        "t_s": [begin + step * table.step_s for step in range(found.forecast.mean.shape[1])],
        "series": {
            name: {
                "mean": found.forecast.mean[row].tolist(),
                "quantiles": dict(zip(levels, found.forecast.quantiles[row].T.tolist(), strict=True)),
            }
            for row, name in enumerate(table.names)
        },
    }
