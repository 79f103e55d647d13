"""``headgate submit``: more dataflows for a running engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.asking import State, ask
from headgate.cli.output import AsJson, known_types, notices_to_stderr, print_json, print_tables
from headgate.documents.document import to_document
from headgate.errors import printable
from headgate.service.engine_tables import submission_tables
from headgate.service.load import load_all
from headgate.service.plan import dataflow_files

__all__ = ["submit"]


def submit(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Dataflows, or folders of them.")],
    state: State = Path(".headgate"),
    replace: Annotated[bool, typer.Option("--replace", help="Update running dataflows of the same names.")] = False,
    as_json: AsJson = False,
) -> None:
    """Submit dataflows to a running engine, all of them or none, and show which tasks are shared with whom.

    Relative paths in a dataflow are looked up in the folder in which the engine was started. Exit status 2 when a file
    is not valid, a name is taken, Spark refuses a task, or no engine is running: nothing has changed then.

    Example: [bold]headgate submit hot.yaml --state here[/bold]
    """
    loaded = load_all(dataflow_files(files), known_types())
    notices_to_stderr(notice for one in loaded for notice in one.notices)
    documents = [to_document(one.dataflow) for one in loaded]
    answer = ask(state, lambda client: client.submit(documents, replace=replace), "submitting")
    if as_json:
        print_json(answer)
        return
    if answer["folder"] != str(Path.cwd()):
        typer.echo(printable(f"Relative paths in a dataflow start from {answer['folder']}."), err=True)
    for name in answer["continued"]:
        typer.echo(f"{printable(name)}: already running, unchanged")
    written = {str(one.dataflow.name): [str(task.id) for task in one.dataflow.tasks] for one in loaded}
    if answer["submitted"]:
        print_tables(submission_tables(answer, written))
