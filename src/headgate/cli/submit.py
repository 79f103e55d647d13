"""``headgate submit``: more dataflows for a running engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.catch_up import wait_for_catch_up
from headgate.cli.engine import ask
from headgate.cli.output import AsJson, State, known_types, print_json, print_tables, read_dataflows
from headgate.documents.document import to_document
from headgate.errors import InputError, printable
from headgate.service.engine_tables import submission_tables
from headgate.service.plan import PlannedChanges, dataflow_files

if TYPE_CHECKING:
    from headgate.api.client import EngineClient

__all__ = ["submit"]


def submit(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Dataflows, or folders of them.")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="FILE", help="Apply this plan, which headgate plan --out has written."),
    ] = None,
    state: State = Path(".headgate"),
    replace: Annotated[bool, typer.Option("--replace", help="Update running dataflows of the same names.")] = False,
    allow_partial: Annotated[
        bool, typer.Option("--allow-partial", help="Take what is there where some of the past is gone.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until they have caught up with what had passed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Submit dataflows to a running engine, all of them or none, and show which tasks are shared with whom.

    Relative paths in a dataflow are looked up in the folder in which the engine was started. Exit status 2 when a file
    is not valid, a name is taken, Spark refuses a task, or no engine is running: nothing has changed then.

    With --plan the dataflows of the plan are submitted, its alternates become active, and its stateful tasks run on as
    many partitions as they have cores in the plan.

    A dataflow whose source runs already gets what has passed too; its "start" says from where on. With --wait the
    command ends when it has.

    Examples: [bold]headgate submit hot.yaml --state here[/bold], [bold]headgate submit --plan plan.json[/bold]
    """
    if (plan is None) == (not files):
        raise InputError("NOTHING_TO_SUBMIT", "name the dataflows to submit, or one plan with --plan")
    registry = known_types()
    changes = PlannedChanges()
    if plan is not None:
        from headgate.service.plan_document import planned_changes, read_plan

        document = read_plan(plan)
        documents = [dict(flow) for flow in document.dataflows]
        changes = planned_changes(document, registry)
    else:
        documents = [to_document(one.dataflow) for one in read_dataflows(dataflow_files(files or []), registry)]
    answer = ask(state, lambda client: _applied(client, documents, replace, allow_partial, changes), "submitting")
    if wait:
        wait_for_catch_up(state, [facts["dataflow"] for facts in answer["submitted"]])
    if as_json:
        print_json(answer)
        return
    if answer["folder"] != str(Path.cwd()):
        typer.echo(printable(f"Relative paths in a dataflow start from {answer['folder']}."), err=True)
    for name in answer["continued"]:
        typer.echo(f"{printable(name)}: already running, unchanged")
    written = {str(one["name"]): [str(task["id"]) for task in one["tasks"]] for one in documents}
    if answer["submitted"]:
        print_tables(submission_tables(answer, written))
    for note in changes.sentences():
        typer.echo(printable(note))


def _applied(
    client: EngineClient,
    documents: Sequence[Mapping[str, Any]],
    replace: bool,
    allow_partial: bool,
    changes: PlannedChanges,
) -> dict[str, Any]:
    """Submit dataflows; then make the alternates and partitions of a plan active."""
    answer = client.submit(documents, replace=replace, allow_partial=allow_partial)
    for dataflow, task, alternate in changes.alternates:
        client.switch(dataflow, task, alternate)
    for dataflow, task, partitions in changes.partitions:
        client.repartition(dataflow, task, partitions)
    return answer
