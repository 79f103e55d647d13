"""``headgate plan``: what submitting dataflows would share, need and cost, before anything happens."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.output import (
    AsCsv,
    AsJson,
    known_types,
    packages,
    print_tables,
    read_dataflows,
    seconds,
    step_to_stderr,
    write_file,
)
from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.table import Table
from headgate.service.figures import figures_of, figures_tables
from headgate.service.load import load
from headgate.service.plan import StrategyName, dataflow_files, read_prices
from headgate.service.plan import plan as plan_submissions
from headgate.service.plan_tables import capacity_tables, sharing_tables

if TYPE_CHECKING:
    from headgate.service.capacity import CapacityRequest, Latency, Plan
    from headgate.service.figures import AlternateFigures

__all__ = ["plan"]

COMPARED = ("exact", "ga", "ce", "sh")


def plan(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Dataflows to be submitted, in this order.")],
    running: Annotated[
        list[Path] | None,
        typer.Option("--running", "-r", help="What runs already: a dataflow, or a folder of them; may be repeated."),
    ] = None,
    strategy: Annotated[
        StrategyName, typer.Option("--strategy", "-s", help="How dataflows are merged where they run.")
    ] = StrategyName.HOT,
    exact: Annotated[bool, typer.Option("--exact", help="Share equal tasks only, no wider streams.")] = False,
    prices: Annotated[
        Path | None, typer.Option("--prices", help="What machines cost and hold for the bills, as YAML or JSON.")
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[SOURCE=]RATE", help="Messages per second from outside, such as 50 or reports=50: plans capacity."
        ),
    ] = None,
    peak: Annotated[bool, typer.Option("--peak", help="Plan for the peak of rates that vary, not the mean.")] = False,
    catalogue: Annotated[
        str, typer.Option(help="Machines: ec2-2013, floe-sim, ec2-2024, or a .yaml file.")
    ] = "ec2-2013",
    algorithm: Annotated[
        list[str] | None, typer.Option(help="auto, exact, ce, sh, ga or br; repeat it to compare several.")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Compare exact, ga, ce and sh.")] = False,
    throughput: Annotated[
        float | None, typer.Option(help="The least relative throughput, instead of the service level's.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="The most that an hour may cost.")] = None,
    break_even: Annotated[
        str | None, typer.Option(metavar="BEST,WORST", help="What an hour may cost at best and at worst value.")
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="The most cores.")] = None,
    cost: Annotated[
        list[str] | None, typer.Option(metavar="TASK=SECONDS", help="What a message costs in a task, on one core.")
    ] = None,
    message_bytes: Annotated[float, typer.Option(help="The size of a message.")] = 100.0,
    time_limit: Annotated[str, typer.Option(help="The longest that an algorithm may search.")] = "10s",
    plot: Annotated[Path | None, typer.Option(help="Draw cost against value into this .svg, .png, .pdf.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the plan to this .json file, for headgate submit --plan.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over existing files.")] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show what submitting dataflows would do; nothing is run.

    Always: which tasks are shared, whom it touches, and everyone's bill. Without --prices, a machine costs 0.10 USD an
    hour and holds one worker of eight tasks. With --rate also: the best alternates, cores and machines, with predicted
    throughput, latency, cost and profit. The figures that this rests on are listed, each with where it comes from: a
    task without cost_s is taken to cost what is typical of its type. Without break-even costs in the service level,
    tasks keep their best alternates.

    Examples: [bold]headgate plan new.yaml --running flows/[/bold],
    [bold]headgate plan road.yaml --rate reports=50 --rate weather=0.5 --compare --out plan.json[/bold]
    """
    registry = known_types()
    there = [load(path, registry).dataflow for path in dataflow_files(running or [])]
    paths = dataflow_files(files)
    flows = [loaded.dataflow for loaded in read_dataflows(paths, registry)]
    planned = plan_submissions(
        there,
        flows,
        registry,
        strategy=strategy,
        semantic=not exact,
        prices=read_prices(prices) if prices else None,
    )
    tables = list(sharing_tables(planned))
    capacity = _Capacity([], {})
    if rate:
        with packages("planning", "planning"):
            import highspy  # noqa: F401 (checked before the work starts)

            from headgate.service.capacity import CapacityRequest

        request = CapacityRequest(
            tuple(rate), catalogue, peak, throughput, budget, break_even, cores, message_bytes
        )  # fmt: skip
        names = algorithm or (list(COMPARED) if compare else ["auto"])
        progress = sys.stderr.isatty() and not as_json and not as_csv
        limit_s = seconds("--time-limit", time_limit)
        known = [figures_of(flow, registry, cost or ()) for flow in flows]
        given = list(zip(flows, paths, known, strict=True))
        capacity = _capacity(request, given, names, limit_s, progress, plot, force, as_json or as_csv)
    elif plot is not None or algorithm or compare or cost:
        raise InputError("NO_RATE", "planning capacity needs a rate; give one such as --rate 50")
    print_tables([*tables, *capacity.tables], as_json, as_csv)
    if out is not None:
        from headgate.service.plan_document import plan_document

        write_file(out, plan_document(flows, capacity.plans).model_dump_json(indent=2) + "\n", force)


@dataclass(frozen=True, slots=True)
class _Capacity:
    tables: list[Table]
    plans: dict[str, tuple[Plan, Latency]]
    """The best plan of each dataflow, with its predicted latency."""


def _capacity(
    request: CapacityRequest,
    flows: Sequence[tuple[Dataflow, Path, Sequence[AlternateFigures]]],
    algorithms: Sequence[str],
    limit_s: float,
    progress: bool,
    plot: Path | None,
    force: bool,
    in_full: bool,
) -> _Capacity:
    """Plan the capacity of each dataflow; a rate of a source counts for the dataflows that have the source."""
    from headgate.report.figures import check_picture
    from headgate.service.capacity import answers_of, best_plan, latencies, plans_picture, problem_of, requests_by_flow

    if plot is not None:
        check_picture(plot.suffix)
        if len(flows) > 1:
            raise InputError("ONE_PLOT", "--plot draws the plans of one dataflow; name one file")
    report = (lambda name: step_to_stderr(f"{name} ...")) if progress else None
    capacity = _Capacity([], {})
    for (flow, path, known), own in zip(flows, requests_by_flow(request, [flow for flow, *_ in flows]), strict=True):
        problem = problem_of(own, flow, path.parent, known)
        answers = answers_of(problem, algorithms, limit_s, report)
        best, latency = best_plan(answers), latencies(problem, answers)
        if plot is not None:
            write_file(plot, plans_picture(problem, answers, plot.suffix), force)
        capacity.tables.extend(figures_tables(known, in_full))
        capacity.tables.extend(capacity_tables(problem, answers, best, latency))
        capacity.plans[flow.name] = (best, latency[best.planner])
    return capacity
