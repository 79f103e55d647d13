"""``headgate submit``: more dataflows for a running engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.asking import AsJson, State, ask, counted
from headgate.cli.output import known_types, notices_to_stderr, print_json
from headgate.documents.document import to_document
from headgate.errors import Fault, InvalidDataflow, printable
from headgate.service.load import Loaded, load
from headgate.service.plan import dataflow_files

__all__ = ["submit", "told_withdrawn"]


def submit(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Dataflows, or folders of them.")],
    state: State = Path(".headgate"),
    replace: Annotated[
        bool, typer.Option("--replace", help="Put a changed file in the place of the running dataflow of its name.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Submit dataflows to a running engine, all of them or none, and tell what is shared with whom.

    Relative paths in a dataflow are looked up in the folder in which the engine was started. Exit status 2 when a file
    is not valid, a name is taken, Spark refuses a task, or no engine is running: nothing has changed then.

    Example: [bold]headgate submit hot.yaml --state here[/bold]
    """
    registry = known_types()
    loaded, faults = list[Loaded](), list[Fault]()
    for path in dataflow_files(files):
        try:
            loaded.append(load(path, registry))
        except InvalidDataflow as error:
            faults += error.faults
    if faults:
        raise InvalidDataflow(faults)
    notices_to_stderr(notice for one in loaded for notice in one.notices)
    documents = [to_document(one.dataflow) for one in loaded]
    told = ask(state, lambda client: client.submit(documents, replace=replace), "submitting")
    if as_json:
        print_json(told)
        return
    written = {one.dataflow.name: [task.id for task in one.dataflow.tasks] for one in loaded}
    if told["folder"] != str(Path.cwd()):
        typer.echo(printable(f"paths in a dataflow are looked up in {told['folder']}, where the engine runs"), err=True)
    for name in told["continued"]:
        typer.echo(printable(f"{name}: runs already, just as the file says"))
    for facts in told["submitted"]:
        typer.echo(_lines(_submitted(facts, written[facts["dataflow"]])))
    if told["submitted"]:
        typer.echo(_fragments(told))


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(map(printable, lines))


def _submitted(facts: Mapping[str, Any], tasks: Sequence[str]) -> list[str]:
    reused = {one["task"]: one["for"] for one in facts["reused"]}
    wider = {one["task"]: one["residual"] for one in facts["wider"]}
    left = {task for residual in wider.values() for task in residual}
    new = [task for task in facts["added"] if task not in left]
    head = f"{facts['dataflow']}: {counted(len(tasks), 'task')}; {len(reused)} shared"
    head += f", {len(wider)} from wider streams" if wider else ""
    lines, width = [f"{head}, {len(new)} new"], max(map(len, tasks))
    for task in tasks:
        if task in reused:
            lines.append(f"  = {task:<{width}}  with {reused[task]}")
        elif task in wider:
            how = f"from a wider stream, by {', then '.join(wider[task])}" if wider[task] else "made already"
            lines.append(f"  ~ {task:<{width}}  {how}")
        elif task in new:
            lines.append(f"  + {task}")
        else:
            lines.append(f"  - {task:<{width}}  not needed")
    return lines


def _fragments(told: Mapping[str, Any]) -> str:
    fragments = told["fragments"]
    counts = ", ".join(f"{len(fragments[how])} {how}" for how in ("touched", "started", "restarted"))
    return f"snapshot {told['snapshot']}; fragments: {counts}"


def told_withdrawn(told: Mapping[str, Any]) -> str:
    """What a withdrawal has changed, for people."""
    lines = []
    for facts in told["withdrawn"]:
        removed, left = counted(len(facts["removed"]), "task"), len(facts["left"])
        lines += [
            f"{facts['dataflow']}: {removed} removed, {left} left to others",
            *(f"  = {one['task']}  for {one['for']}" for one in facts["left"]),
        ]
    return _lines([*lines, _fragments(told)])
