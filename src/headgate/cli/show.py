"""``headgate show``: a dataflow as text, picture or JSON."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.output import Force, Output, known_types, notices_to_stderr, print_json, write_text
from headgate.documents.document import to_document
from headgate.service.load import Loaded, load
from headgate.service.task_types import Registry

__all__ = ["show"]


class View(StrEnum):
    TEXT = "text"
    MERMAID = "mermaid"
    SVG = "svg"
    JSON = "json"


def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A dataflow as .yaml, .json, .xml or .py.")],
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
    import json

    return json.dumps(_facts(loaded, registry), indent=2, ensure_ascii=False) + "\n"


def _facts(loaded: Loaded, registry: Registry) -> dict[str, Any]:
    """The document, with each task's signature and whether it keeps state."""
    document = to_document(loaded.dataflow)
    for task, facts in zip(loaded.dataflow.tasks, document["tasks"], strict=True):
        facts["signature"] = loaded.signatures[task.id]
        facts["stateful"] = any(registry[alternate.type].stateful for alternate in task.alternates)
    return document
