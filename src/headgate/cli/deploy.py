"""``headgate deploy``: from a rate and a latency to instances on machines, measured and corrected until they hold."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.output import (
    AsJson,
    Force,
    State,
    known_types,
    packages,
    print_json,
    print_tables,
    seconds,
    step_to_stderr,
    write_file,
)
from headgate.errors import InputError, printable

if TYPE_CHECKING:
    from headgate.service.deploy import Attempt, Deploying, DeploymentPlan, Outcome

__all__ = ["deploy"]

NOT_REACHED = 2


def deploy(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A dataflow as .yaml, .json, .xml or .py.")],
    rate: Annotated[
        list[str], typer.Option(metavar="[SOURCE=]RATE", help="Rows per second of every source, or of one of them.")
    ],
    latency: Annotated[str, typer.Option(metavar="SPAN", help="Within which time a row is done, such as 500ms.")],
    budget: Annotated[str | None, typer.Option(metavar="AMOUNT", help="The most for an hour, such as 2.50/h.")] = None,
    machines: Annotated[int | None, typer.Option(help="The most machines.", min=1)] = None,
    vm_classes: Annotated[
        str, typer.Option(help="Machines: p-deployer, ec2-2013, floe-sim, ec2-2024, or a .yaml file.")
    ] = "p-deployer",
    packer: Annotated[str, typer.Option(help="first-fit, exact, r-storm, metis or round-robin.")] = "first-fit",
    alpha: Annotated[float, typer.Option(help="Cores that an instance may use for transfer.")] = 0.1,
    beta: Annotated[float, typer.Option(help="MiB that an instance may use.")] = 512.0,
    fill: Annotated[float, typer.Option(help="Share of CPU and of an instance's time to plan with.")] = 0.9,
    saving_weight: Annotated[float, typer.Option(help="Weight of saved CPU in the priority of first-fit (a_r).")] = 1.0,
    trigger: Annotated[str | None, typer.Option(metavar="SPAN", help="Time between micro-batches, if any.")] = None,
    profiles: Annotated[
        Path | None, typer.Option("--profiles", metavar="FILE", help="Figures that come before all others.")
    ] = None,
    beside: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pack into the room on the machines of this deployment (--out).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only plan; measure nothing.")] = False,
    simulate: Annotated[bool, typer.Option("--simulate", help="Measure in a simulated cloud.")] = False,
    error: Annotated[float, typer.Option(help="Simulated: costs are off by up to this share.", min=0.0)] = 0.2,
    overhead: Annotated[float, typer.Option(help="Simulated: CPU that rows cost in addition.", min=0.0)] = 0.15,
    seed: Annotated[int, typer.Option(help="Simulated: the same seed gives the same cloud.")] = 1,
    state: State = Path(".headgate"),
    plot: Annotated[Path | None, typer.Option(help="Draw machines and iterations into this file.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the deployment as JSON to this file.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Plan instances and machines for a rate within a latency, deploy, measure, correct, until the target holds.

    Each operator gets the fewest instances with which it keeps up; they are packed on machines so that neighbours sit
    together. What is measured corrects the profiles, and the next plan follows from them. It ends when the target
    holds, when the next plan is above the budget, or when a further machine does not help; exit status 2 says that
    the target was not reached.

    Where an engine runs on the state directory, the dataflow that runs there is deployed: machines come from the
    engine's provider, and tasks get partitions. Without one, or with --simulate, deployments are measured in a
    simulated cloud, whose costs are off from what is known of them.

    Examples: [bold]headgate deploy etl.yaml --rate 6000 --latency 2s --dry-run[/bold],
    [bold]headgate deploy etl.yaml --rate 6000 --latency 2s --budget 2.50/h --simulate[/bold]
    """
    with packages("deploying", "planning"):
        import highspy  # noqa: F401 (checked before the work starts)

        from headgate.report.figures import check_picture
        from headgate.service.deploy import DeployRequest, deploying_of, planned_only, run_live, run_simulated
        from headgate.service.deploy_document import read_sites
        from headgate.service.profile import profiles_of_file, read_profiles
    if plot is not None:
        check_picture(plot.suffix)
    given = read_profiles(profiles) if profiles else None
    dataflow, known = profiles_of_file(file, known_types(), state, given)
    request = DeployRequest(
        tuple(rate),
        seconds("--latency", latency),
        budget,
        machines,
        vm_classes,
        packer,
        alpha,
        beta,
        fill,
        saving_weight,
        seconds("--trigger", trigger) if trigger else 0.0,
        there=read_sites(beside) if beside else (),
    )
    if dry_run and simulate:
        raise InputError("BAD_TARGET", "--dry-run measures nothing, --simulate does; give one of them")
    shown = None if as_json or not sys.stderr.isatty() else _show
    not_enforced: Mapping[str, str] = {}
    if dry_run or simulate or not _engine_there(state):
        deploying = deploying_of(request, dataflow, known, file.parent)
        if dry_run:
            _report(deploying, planned_only(deploying), None, dataflow.name, plot, out, force, as_json)
            return
        not_enforced = {"everything": "it was measured in a simulated cloud"}
        outcome = run_simulated(deploying, error, overhead, seed, shown)
    else:
        from headgate.cli.remote import client_of

        with client_of(state) as client:
            deploying, outcome, not_enforced = run_live(client, request, dataflow, known, file.parent, state, shown)
    _report(deploying, outcome.plan, outcome, dataflow.name, plot, out, force, as_json, not_enforced)
    if not outcome.reached:
        raise typer.Exit(NOT_REACHED)


def _engine_there(state: Path) -> bool:
    """Whether an engine answers on a state directory."""
    from headgate.api.target import SocketTarget
    from headgate.errors import HeadgateError

    try:
        SocketTarget(state).check()
    except HeadgateError:
        return False
    return True


def _show(number: int, attempt: Attempt) -> None:
    from headgate.service.deploy_tables import attempt_line

    step_to_stderr(attempt_line(number, attempt))


def _report(
    deploying: Deploying,
    plan: DeploymentPlan | None,
    outcome: Outcome | None,
    name: str,
    plot: Path | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    not_enforced: Mapping[str, str] | None = None,
) -> None:
    from headgate.service.deploy_document import deployment_document, document_text
    from headgate.service.deploy_tables import iterations_table, plan_tables

    attempts = outcome.attempts if outcome is not None else ()
    document = deployment_document(plan, deploying.target, attempts, outcome)
    document["not_enforced"] = dict(not_enforced or {})
    if plot is not None and plan is not None:
        from headgate.report.placements import draw_deployment

        write_file(plot, draw_deployment(plan, attempts, deploying.target, name, plot.suffix), force)
    if out is not None:
        write_file(out, document_text(document), force)
    if as_json:
        print_json(document)
        return
    measured = next((each for each in reversed(attempts) if each.plan is plan), None)
    tables = [iterations_table(attempts)] if attempts else []
    print_tables([*tables, *(plan_tables(plan, deploying.target, measured) if plan is not None else [])])
    if outcome is not None:
        typer.echo(printable(f"{'Reached' if outcome.reached else 'Not reached'}: {outcome.sentence}."))
    for what, reason in (not_enforced or {}).items():
        typer.echo(printable(f"Not enforced: {what}: {reason}."))
