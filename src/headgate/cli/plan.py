"""``headgate plan``: before anything happens, what would be reused and added, whom it touches and who pays what."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.output import known_types, notices_to_stderr, print_json
from headgate.errors import printable
from headgate.model.names import TaskId
from headgate.model.strategy import StrategyName
from headgate.report.text_table import text_table
from headgate.service.facts import submission_facts, task_names
from headgate.service.load import load
from headgate.service.plan import Planned, PlannedSubmission, dataflow_files, read_prices
from headgate.service.plan import plan as plan_submissions
from headgate.sharing.shared_set import Submission

__all__ = ["plan"]

MOST_NAMES = 5


def plan(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Dataflows to be submitted, in this order.")],
    running: Annotated[
        list[Path] | None,
        typer.Option("--running", "-r", help="What runs already: a dataflow, or a folder of them; may be repeated."),
    ] = None,
    strategy: Annotated[
        StrategyName, typer.Option("--strategy", "-s", help="How dataflows are merged where they run.")
    ] = StrategyName.HOT,
    exact: Annotated[bool, typer.Option("--exact", help="Reuse equal tasks only, no wider streams.")] = False,
    prices: Annotated[
        Path | None, typer.Option("--prices", help="What machines cost and hold, as YAML or JSON.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Show what submitting dataflows would do: what is reused and added, whom it touches, everyone's bill.

    Nothing is run. Without --prices, a machine costs 0.10 USD an hour and holds one worker of eight tasks.

    Examples: [bold]headgate plan new.yaml --running flows/[/bold],
    [bold]headgate plan new.yaml -r a.yaml -r b.yaml --prices prices.yaml[/bold]
    """
    registry = known_types()
    there = [load(path, registry) for path in dataflow_files(running or [])]
    given = [load(path, registry) for path in dataflow_files(files)]
    notices_to_stderr(notice for loaded in given for notice in loaded.notices)
    planned = plan_submissions(
        [loaded.dataflow for loaded in there],
        [loaded.dataflow for loaded in given],
        registry,
        strategy=strategy,
        semantic=not exact,
        prices=read_prices(prices) if prices else None,
    )
    if as_json:
        print_json(_facts(planned, strategy))
    else:
        typer.echo(_told(planned), nl=False)


def _told(planned: Planned) -> str:
    lines = [line for submission in planned.submissions for line in [*_submission(submission), ""]]
    prices = planned.prices
    lines += [
        f"per hour, in {prices.currency}: a machine costs {prices.price_per_h} and holds {prices.workers_per_vm} "
        f"{'worker' if prices.workers_per_vm == 1 else 'workers'} of {prices.tasks_per_worker} tasks",
        "",
        *_bills(planned),
    ]
    return "\n".join(map(printable, lines)) + "\n"


def _submission(planned: PlannedSubmission) -> list[str]:
    submission, flow = planned.submission, planned.dataflow
    change, wider = submission.change, {found.task: found for found in submission.wider}
    users = {shared.id: shared.named_users() for shared in change.shared}
    exact = set(submission.exact)
    read = [task for task in (task.id for task in flow.tasks) if task in wider]
    left = {task for found in wider.values() for task in found.residual}
    new = [task for task in change.own_ids if task not in left]
    head = f"{flow.name} (owner {flow.owner}): {len(flow.tasks)} tasks"
    head += f"; {len(exact)} {'runs' if len(exact) == 1 else 'run'} already"
    head += f", {len(read)} {'reads a wider stream' if len(read) == 1 else 'read wider streams'}" if read else ""
    lines = [f"{head}, {len(new)} new"]
    width = max((len(task.id) for task in flow.tasks), default=0)
    for task in flow.tasks:
        if task.id in exact:
            lines.append(f"  = {task.id:<{width}}  for {users[task.id]}")
        elif task.id in wider:
            lines.append(f"  ~ {task.id:<{width}}  {_residual(submission, wider[task.id].residual)}")
        elif task.id in users:
            lines.append(f"  ~ {task.id:<{width}}  the same rows are made already, for {users[task.id]}")
        elif task.id in new:
            lines.append(f"  + {task.id}")
        else:
            lines.append(f"  - {task.id:<{width}}  not needed: nothing reads it any more")
    names = task_names(change)
    taps = [f"{names[tap.source]} -> {names[tap.target]}" for tap in change.taps]
    lines.append(f"taps opened: {_listed(taps) or 'none'}")
    touched, interrupted = _listed(sorted(change.touched)), _listed(sorted(planned.interrupted))
    lines.append(f"touches {touched or 'nobody'}; interrupts {interrupted or 'nobody'}")
    return lines


def _residual(submission: Submission, tasks: tuple[TaskId, ...]) -> str:
    if not tasks:
        return "the same rows are made already, in another way"
    types = {task.id: task.type for task in submission.dataflow.tasks}
    return f"from a wider stream, by {', then '.join(types[task] for task in tasks)}"


def _bills(planned: Planned) -> list[str]:
    rows = [("", "owner", "before", "after", "change", "alone")]
    rows += [
        (
            b.dataflow,
            b.owner,
            "" if b.before is None else f"{b.before:.4f}",
            f"{b.after:.4f}",
            f"{b.change:+.4f}",
            f"{b.alone:.4f}",
        )
        for b in planned.bills
    ]
    total = planned.total_after - planned.total_before
    rows.append(("all", "", f"{planned.total_before:.4f}", f"{planned.total_after:.4f}", f"{total:+.4f}", ""))
    return text_table(rows, right=range(2, 6)).splitlines()


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(islice(names, MOST_NAMES)) + (f" and {more} more" if more > 0 else "")


def _facts(planned: Planned, strategy: StrategyName) -> dict[str, Any]:
    return {
        "strategy": strategy.value,
        "submissions": [_submission_facts(submission) for submission in planned.submissions],
        "currency": planned.prices.currency,
        "bills": [
            {
                "dataflow": bill.dataflow,
                "owner": bill.owner,
                "before_per_h": None if bill.before is None else str(bill.before),
                "after_per_h": str(bill.after),
                "change_per_h": str(bill.change),
                "alone_per_h": str(bill.alone),
            }
            for bill in planned.bills
        ],
        "total_before_per_h": str(planned.total_before),
        "total_after_per_h": str(planned.total_after),
    }


def _submission_facts(planned: PlannedSubmission) -> dict[str, Any]:
    return {
        **submission_facts(planned.submission),
        "interrupted": sorted(planned.interrupted),
        "launched": len(planned.steps.launched),
        "stopped": len(planned.steps.stopped),
    }
