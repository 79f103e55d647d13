"""``headgate simulate``: what would happen to a dataflow, its throughput and its bill."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import AsCsv, AsJson, known_types, packages, print_tables, seconds, write_file
from headgate.errors import InputError
from headgate.model.table import Table
from headgate.service.figures import figures_tables

__all__ = ["simulate"]


def simulate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="A dataflow whose tasks have costs; with --shared also several, merged."
        ),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="static, static-peak, threshold, ce, sh, ga, exact, ds2, flink, cpu, lookahead, receding, "
            "caf, waaf, wpa, wpo, wpp or, with --shared, drs; repeat it to compare several."
        ),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="[SOURCE=]KIND:NUMBERS", help="Messages from outside, such as reports=random-walk:50."),
    ] = None,
    hours: Annotated[float, typer.Option(min=0.0, help="For how long.")] = 12.0,
    interval: Annotated[str, typer.Option(help="The length of an interval.")] = "2min",
    cloud: Annotated[str, typer.Option(help="ec2-2013, floe-sim, ec2-2024, or a .yaml file.")] = "ec2-2013",
    cost: Annotated[
        list[str] | None, typer.Option(metavar="TASK=SECONDS", help="What a message costs in a task, on one core.")
    ] = None,
    variability: Annotated[
        str, typer.Option(help="How machines perform: none, ec2, futuregrid, or a file or folder of traces.")
    ] = "none",
    metric: Annotated[str | None, typer.Option(help="Which metric of the traces is the speed.")] = None,
    unit: Annotated[str, typer.Option(help="Of the traces: share, percent, used-percent, time or rate.")] = "share",
    replay: Annotated[
        Path | None, typer.Option(help="Observations of a live run (.jsonl): rates, costs and speeds come from there.")
    ] = None,
    replications: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many random worlds.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random worlds.")] = 1,
    horizon: Annotated[str, typer.Option(help="How far lookahead, wpa, wpo and wpp look ahead.")] = "30min",
    forecaster: Annotated[
        str,
        typer.Option(
            help="How they forecast: ensemble, holt, kalman, ..., or oracle:ERROR:BIAS, the future with errors."
        ),
    ] = "ensemble",
    season: Annotated[str, typer.Option(help="The period after which rates repeat, such as 1d; default none.")] = "",
    window: Annotated[int, typer.Option(min=1, help="Over how many intervals waaf takes the mean.")] = 6,
    alternates_every: Annotated[
        int, typer.Option(min=1, help="At every so many decisions, ce, sh and what uses them choose alternates (m).")
    ] = 5,
    resources_every: Annotated[
        int, typer.Option(min=1, help="Of the other decisions, every so many are on resources (n).")
    ] = 1,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared", help="All tasks share the cores of one pool, as on Spark; otherwise each has its own."
        ),
    ] = False,
    epoch: Annotated[
        str, typer.Option(help="With --shared: how long epochs aim to be; 0s for messages that flow.")
    ] = "2s",
    epoch_cost: Annotated[
        str, typer.Option(help="With --shared: what of an epoch passes before its rows do.")
    ] = "200ms",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show why each decision was taken, and what was planned.")
    ] = False,
    hindsight: Annotated[
        bool, typer.Option("--hindsight", help="Compare each policy with the best that was possible.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the runs into this .svg, .png or .pdf file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an .html page with tables and pictures.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over existing files.")] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Simulate a dataflow on machines that vary: throughput, backlog, cost and profit under policies.

    Example: [bold]headgate simulate road.yaml --rate reports=random-walk:50 --rate weather=constant:1 --policy
    threshold --plot road.svg[/bold]

    Look an hour ahead, and say why: [bold]headgate simulate road.yaml --rate reports=sinusoid:75,2 --rate
    weather=constant:1 --policy caf --policy lookahead --horizon 1h --interval 5min --variability ec2 --explain[/bold]

    On a pool of shared cores: [bold]headgate simulate road.yaml --rate reports=sinusoid:75,2 --rate weather=constant:1
    --shared --policy ds2 --policy exact[/bold]
    """
    with packages("simulating", "simulation"):
        from headgate.report.figures import check_picture
        from headgate.report.runs import draw_runs
        from headgate.service.pool_tables import pool_tables
        from headgate.service.simulate import (
            PolicySettings,
            SharedPool,
            SimulationRequest,
            run_policies,
            setting_of,
            simulated_dataflow,
        )
        from headgate.service.simulation_tables import (
            ledger_table,
            plans_table,
            reasons_table,
            run_tables,
            series_table,
            simulation_page,
        )
    if plot is not None or report is not None:
        check_picture(plot.suffix if plot else ".svg")
    interval_s = seconds("--interval", interval)
    pool = SharedPool(_or_none("--epoch", epoch), _or_none("--epoch-cost", epoch_cost)) if shared else None
    file, *others = files
    request = SimulationRequest(
        file, tuple(rate or ()), hours, interval_s, cloud, variability, metric, unit, replications, seed,
        costs=tuple(cost or ()), others=tuple(others), shared=pool,
    )  # fmt: skip
    live: list[Table] = []
    if replay is None:
        setting = setting_of(request, known_types())
        figures = simulated_dataflow(request, known_types())[1]
    else:
        if shared:
            raise InputError("BAD_SETTING", "--replay simulates tasks with cores of their own; leave out --shared")
        from headgate.service.replay import replay_gap, replayed_setting
        from headgate.service.simulation_tables import gap_table

        setting, figures = replayed_setting(request, replay, known_types())
        live = [gap_table(replay_gap(file, replay, known_types()))]
    season_s = seconds("--season", season) if season else 0.0
    ahead = PolicySettings(
        forecaster, seconds("--horizon", horizon), season_s, None, window, alternates_every, resources_every
    )
    shown = sys.stderr.isatty() and not as_json and not as_csv
    runs = run_policies(setting, policy or ["static"], _progress if shown else None, ahead)
    tables: list[Table] = [*figures_tables(figures, as_json or as_csv), *run_tables(runs), *pool_tables(runs)]
    if hindsight:
        from headgate.service.hindsight import regrets
        from headgate.service.simulation_tables import hindsight_table

        tables.append(hindsight_table(*regrets(runs)))
    if explain:
        tables.append(reasons_table(runs, all_replications=as_json or as_csv))
        if any(run.plans for run in runs):
            tables.append(plans_table(runs, all_replications=as_json or as_csv))
    if as_json:
        tables += [series_table(runs), ledger_table(runs)]
    if plot is not None:
        write_file(plot, draw_runs(runs, plot.suffix), force)
    if report is not None:
        write_file(report, simulation_page(runs), force)
    print_tables([*tables, *live], as_json, as_csv)


def _or_none(option: str, text: str) -> float:
    """A span of time that may be none at all."""
    return 0.0 if text.strip() in ("0", "0s") else seconds(option, text)


def _progress(policy: str, done: int, of: int) -> None:
    typer.echo(f"\r  {policy}: interval {done:,} of {of:,}" + ("\n" if done == of else ""), err=True, nl=False)
