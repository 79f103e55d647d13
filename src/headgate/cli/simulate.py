"""``headgate simulate``: what would happen to a dataflow, its throughput and its bill."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import known_types, print_json, write_file
from headgate.cli.span import seconds
from headgate.errors import missing_package, printable

if TYPE_CHECKING:
    from headgate.planning.programs.hindsight import Hindsight
    from headgate.service.hindsight import Regret
    from headgate.simulation.run import Run

__all__ = ["simulate", "summary_rows"]

_COLUMNS = {
    "omega": "Ω",
    "within": "in time",
    "gamma": "Γ",
    "cost": "cost",
    "theta": "Θ",
    "core_hours": "core-hours",
    "changes_per_day": "changes/day",
    "backlog": "waiting",
}


def simulate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A dataflow whose tasks have costs.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="static, static-peak, threshold, ce, sh, ga, exact, ds2, flink, cpu, lookahead, lookahead-plain, "
            "receding, caf, "
            "waaf, wpa, wpo or wpp; several are compared."
        ),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="[SOURCE=]KIND:NUMBERS", help="Messages from outside, such as reports=random-walk:50."),
    ] = None,
    hours: Annotated[float, typer.Option(min=0.0, help="For how long.")] = 12.0,
    interval: Annotated[str, typer.Option(help="The length of an interval.")] = "2min",
    cloud: Annotated[str, typer.Option(help="ec2-2013, floe-sim, ec2-2024, or a .yaml file.")] = "ec2-2013",
    variability: Annotated[
        str, typer.Option(help="How machines perform: none, ec2, futuregrid, or a file or folder of traces.")
    ] = "none",
    metric: Annotated[str | None, typer.Option(help="Which metric of the traces is the speed.")] = None,
    unit: Annotated[str, typer.Option(help="Of the traces: share, percent, used-percent, time or rate.")] = "share",
    replay: Annotated[
        Path | None, typer.Option(help="Observations of a live run (.jsonl): rates, costs and speeds come from there.")
    ] = None,
    replications: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many worlds.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="One seed gives one world.")] = 1,
    horizon: Annotated[str, typer.Option(help="How far lookahead, wpa, wpo and wpp look ahead.")] = "30min",
    forecaster: Annotated[
        str,
        typer.Option(help="What they look with: ensemble, holt, kalman, ..., or oracle:ERROR:BIAS, which knows."),
    ] = "ensemble",
    season: Annotated[str, typer.Option(help="After which rates repeat, such as 1d; none if left out.")] = "",
    explain: Annotated[bool, typer.Option("--explain", help="Tell why each decision was taken.")] = False,
    hindsight: Annotated[
        bool, typer.Option("--hindsight", help="Tell what no policy could have exceeded, and the regret of each.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the runs into this .svg or .png file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an .html page with tables and pictures.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Simulate a dataflow on machines that vary: throughput, backlog, cost and profit under policies.

    Example: [bold]headgate simulate road.yaml --rate reports=random-walk:50 --policy threshold --plot road.svg[/bold]

    Look an hour ahead, and say why: [bold]headgate simulate road.yaml --rate reports=sinusoid:75:2 --rate
    weather=constant:1 --policy caf --policy lookahead --horizon 1h --interval 5min --variability ec2 --explain[/bold]
    """
    try:
        if plot is not None or report is not None:
            import matplotlib  # noqa: F401 (better missed now than when the picture is drawn)

        from headgate.report.figures import check_ending
        from headgate.service.simulate import Asked, LookAheadSettings, run_policies, setting_of
    except ModuleNotFoundError as error:
        raise missing_package("NO_SIMULATION", "simulating", error, "simulation") from None
    if plot is not None:
        check_ending(plot.suffix.lower())
    asked = Asked(
        file,
        tuple(rate or ()),
        hours,
        seconds("--interval", interval),
        cloud,
        variability,
        metric,
        unit,
        replications,
        seed,
    )
    gap = None
    if replay is None:
        setting = setting_of(asked, known_types())
    else:
        from headgate.service.replay import replay_gap, replayed_setting

        setting = replayed_setting(asked, replay, known_types())
        gap = replay_gap(file, replay, known_types())
    shown = sys.stderr.isatty() and not as_json
    ahead = LookAheadSettings(forecaster, seconds("--horizon", horizon), seconds("--season", season) if season else 0.0)
    runs = run_policies(setting, policy or ["static"], _progress if shown else None, ahead)
    against = _against(runs) if hindsight else None
    if plot is not None:
        from headgate.report.runs import draw_runs

        write_file(plot, draw_runs(runs, plot.suffix.lower()), force)
    if report is not None:
        write_file(report, _page(runs), force)
    if as_json:
        why = {"reasons": {run.policy: _reasons(run) for run in runs}} if explain else {}
        known = {} if against is None else _hindsight_facts(*against)
        print_json(_facts(runs) | why | known | ({} if gap is None else {"spark_gap": gap.spark_gap, **asdict(gap)}))
        return
    typer.echo(_text(runs), nl=False)
    if against is not None:
        typer.echo(_hindsight_text(*against), nl=False)
    if explain:
        typer.echo(_explained(runs), nl=False)
    if gap is not None:
        told = f"the live run itself, simulated: throughput {gap.throughput:.1%} off, backlog {gap.backlog:.1%} off"
        typer.echo(f"\n{told}")


def _progress(policy: str, done: int, of: int) -> None:
    typer.echo(f"\r  {policy}: interval {done:,} of {of:,}" + ("\n" if done == of else ""), err=True, nl=False)


def summary_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """A row for each run: the means over its replications."""
    return [{"policy": run.policy, **{told: run.totals()[name] for name, told in _COLUMNS.items()}} for run in runs]


def _text(runs: Sequence[Run]) -> str:
    setting = runs[0].setting
    many = f", means of {setting.replications} replications" if setting.replications > 1 else ""
    head = f"{setting.dataflow.name}: {len(runs[0].tasks)} tasks, {setting.hours:g} h in intervals of "
    head += f"{setting.interval_s:g} s on {setting.cloud.name}, machines {setting.pool.source}{many}"
    lines = [printable(head), "", "  policy      " + "".join(f"{told:>12}" for told in _COLUMNS.values())]
    for row in summary_rows(runs):
        cells = "".join(f"{_number(row[told]):>12}" for told in _COLUMNS.values())
        lines.append(f"  {row['policy']:<12}{cells}")
    return "\n".join(lines) + "\n"


def _against(runs: Sequence[Run]) -> tuple[Hindsight, list[Regret]]:
    from headgate.service.hindsight import regrets

    return regrets(runs)


def _hindsight_facts(bound: Hindsight, found: Sequence[Regret]) -> dict[str, Any]:
    told = {"bound": bound.bound, "bound_theta": bound.theta(bound.bound), "unproven": bound.bound - bound.relaxed}
    return {"hindsight": told | {"regrets": {each.policy: asdict(each) for each in found}}}


def _hindsight_text(bound: Hindsight, found: Sequence[Regret]) -> str:
    told = f"no policy that meets the throughput can have more than Γ - σμ = {bound.bound:.4f} (Θ = "
    lines = ["", f"{told}{bound.theta(bound.bound):.4f})", "", "  policy            Γ - σμ      regret       ratio"]
    for each in found:
        missed = "" if each.meets else "  (does not meet the throughput)"
        lines.append(
            f"  {each.policy:<12}{each.profit:>12.4f}{each.regret:>12.4f}{each.hindsight_ratio:>12.3f}{missed}"
        )
    return "\n".join(lines) + "\n"


def _reasons(run: Run) -> list[dict[str, Any]]:
    return [{"at_s": each.at_s, "replication": each.replication, "reason": each.reason} for each in run.reasons]


def _explained(runs: Sequence[Run]) -> str:
    """Why decisions were taken, in the first replication."""
    lines = []
    for run in runs:
        lines += ["", f"{run.policy}:"]
        told = [each for each in run.reasons if each.replication == 0]
        lines += [f"  {each.at_s / 3_600:6.2f} h  {printable(each.reason)}" for each in told]
        if not told:
            lines.append("  decided nothing, or does not say why")
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def _facts(runs: Sequence[Run]) -> dict[str, Any]:
    setting = runs[0].setting
    return {
        "dataflow": str(setting.dataflow.name),
        "cloud": setting.cloud.name,
        "variability": setting.pool.source,
        "hours": setting.hours,
        "interval_s": setting.interval_s,
        "replications": setting.replications,
        "seed": setting.seed,
        "policies": {run.policy: dict(run.totals()) for run in runs},
    }


def _page(runs: Sequence[Run]) -> str:
    from headgate.report.page import html_page, html_table
    from headgate.report.runs import draw_runs

    setting = runs[0].setting
    first: dict[str, Any] = {
        "dataflow": setting.dataflow.name,
        "tasks": len(runs[0].tasks),
        "cloud": setting.cloud.name,
        "machines": setting.pool.source,
        "hours": setting.hours,
        "interval s": setting.interval_s,
        "replications": setting.replications,
        "seed": setting.seed,
    }
    rates = [{"source": name, "rate": _rate_text(rate)} for name, rate in setting.rates.items()]
    queues = [
        {"task": task, **{run.policy: float(run.queues[-1, :, place].mean()) for run in runs}}
        for place, task in enumerate(runs[0].tasks)
    ]
    sections: list[tuple[str, str | bytes]] = [
        ("Setting", html_table([first]) + html_table(rates)),
        ("Policies", html_table(summary_rows(runs))),
        ("Course", draw_runs(runs, ".svg")),
        ("Messages waiting at the end, by task", html_table(queues)),
    ]
    return html_page(f"{setting.dataflow.name}, simulated", sections, "Means over the replications.")


def _rate_text(rate: object) -> str:
    text = repr(rate)
    return text if len(text) < 200 else text[:197] + "..."
