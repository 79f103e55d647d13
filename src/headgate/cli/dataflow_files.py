"""Commands for dataflow files: ``headgate validate``, ``show``, ``convert``, ``diff`` and ``schema``."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.output import (
    AsCsv,
    AsJson,
    Force,
    Output,
    faults_to_stderr,
    known_types,
    notices_to_stderr,
    print_json,
    print_tables,
    write_text,
)
from headgate.documents import form_of, read, write
from headgate.documents.document import json_schema, to_document
from headgate.errors import InputError, InvalidDataflow, counted, printable
from headgate.service.diff import diff_tables
from headgate.service.load import Loaded, load
from headgate.service.task_types import Registry

__all__ = ["convert", "diff", "schema", "show", "validate"]

File = Annotated[Path, typer.Argument(metavar="FILE", help="A dataflow as .yaml, .json, .xml or .py.")]


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


class View(StrEnum):
    TEXT = "text"
    MERMAID = "mermaid"
    SVG = "svg"
    JSON = "json"


def show(
    file: File,
    view: Annotated[View, typer.Option("--format", "-f", help="How to show it.")] = View.TEXT,
    output: Output = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show a dataflow as it would be submitted.

    Example: [bold]headgate show etl.yaml --format svg -o etl.svg[/bold]
    """
    registry = known_types()
    loaded = load(file, registry)
    notices_to_stderr(loaded.notices)
    chosen = View.JSON if as_json else view
    if chosen is View.JSON and output is None:
        print_json(_facts(loaded, registry))
    else:
        write_text(_drawn(loaded, registry, chosen), output, force)


def _drawn(loaded: Loaded, registry: Registry, view: View) -> str:
    # Each view is imported when it is needed: a picture needs a library that text does not.
    if view is View.SVG:
        from headgate.report.svg import to_svg

        return to_svg(loaded.dataflow, registry)
    if view is View.MERMAID:
        from headgate.report.mermaid import to_mermaid

        return to_mermaid(loaded.dataflow, registry)
    if view is View.TEXT:
        from headgate.report.text import to_text

        return to_text(loaded.dataflow)
    return json.dumps(_facts(loaded, registry), indent=2, ensure_ascii=False) + "\n"


def _facts(loaded: Loaded, registry: Registry) -> dict[str, Any]:
    """The document, with each task's signature and whether it keeps state."""
    document = to_document(loaded.dataflow)
    for task, facts in zip(loaded.dataflow.tasks, document["tasks"], strict=True):
        facts["signature"] = loaded.signatures[task.id]
        facts["stateful"] = any(registry[alternate.type].stateful for alternate in task.alternates)
    return document


class DataflowFormat(StrEnum):
    """A format of dataflow files."""

    YAML = "yaml"
    JSON = "json"
    XML = "xml"
    PYTHON = "python"


def convert(
    file: File,
    output: Annotated[
        Path | None, typer.Argument(metavar="[OUTPUT]", help="Where to write it; its ending gives the format.")
    ] = None,
    to: Annotated[DataflowFormat | None, typer.Option("--to", help="The format, when it goes to the terminal.")] = None,
    force: Force = False,
) -> None:
    """Write a dataflow in another format; reading it back gives the same dataflow.

    Example: [bold]headgate convert etl.xml etl.yaml[/bold]
    """
    if output is None and to is None:
        raise InputError("NO_FORMAT", "name a file to write to, or a format with --to yaml, json, xml or python")
    form = to.value if to is not None else form_of(output) if output is not None else ""
    registry = known_types()
    checked = read(file, registry)
    notices_to_stderr(checked.notices)
    write_text(write(checked.dataflow, form, registry), output, force)


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="A dataflow, say one that is running.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another, say one to be submitted.")],
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show which tasks of two dataflows are equivalent, and which only one of them has.

    Example: [bold]headgate diff running.yaml submitted.yaml[/bold]
    """
    registry = known_types()
    one, two = load(first, registry), load(second, registry)
    notices_to_stderr((*one.notices, *two.notices))
    print_tables(diff_tables(one.dataflow, two.dataflow, str(first), str(second)), as_json, as_csv)


def schema(output: Output = None, force: Force = False) -> None:
    """Print the JSON Schema of dataflow files, with the options of every task type.

    Point an editor at it to complete fields and to underline mistakes as you write.

    Example: [bold]headgate schema -o dataflow.schema.json[/bold]
    """
    write_text(json.dumps(json_schema(known_types()), indent=2) + "\n", output, force)
