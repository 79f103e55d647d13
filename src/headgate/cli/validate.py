"""``headgate validate``: every fault of every file, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.output import faults_to_stderr, known_types, notices_to_stderr, print_json
from headgate.errors import InvalidDataflow, counted, printable
from headgate.service.load import load

__all__ = ["validate"]


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Dataflows as .yaml, .json, .xml or .py.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Check dataflow files and report every fault with its line.

    Exit status 0 when all are valid, 2 otherwise. A .py file is run to be read.

    Example: [bold]headgate validate flows/*.yaml[/bold]
    """
    registry = known_types()
    reports: list[dict[str, Any]] = []
    for path in files:
        shown = printable(str(path))
        report: dict[str, Any] = {"file": shown, "valid": True, "faults": [], "notices": []}
        reports.append(report)
        try:
            loaded = load(path, registry)
        except InvalidDataflow as error:
            report |= {"valid": False, "faults": [fault.as_dict() for fault in error.faults]}
            if not as_json:
                faults_to_stderr(error.faults)
                typer.echo(f"{shown}: {counted(len(error.faults), 'fault')}", err=True)
            continue
        flow = loaded.dataflow
        report |= {"name": flow.name, "owner": flow.owner, "tasks": len(flow.tasks), "streams": len(flow.streams)}
        report["notices"] = [notice.as_dict() for notice in loaded.notices]
        if not as_json:
            notices_to_stderr(loaded.notices)
            typer.echo(f"{shown}: valid, {len(flow.tasks)} tasks, {len(flow.streams)} streams")
    valid = all(report["valid"] for report in reports)
    if as_json:
        print_json({"valid": valid, "files": reports})
    if not valid:
        raise typer.Exit(2)
