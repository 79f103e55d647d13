"""``headgate tasks``: the library of task types and their options."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from headgate.cli.output import AsCsv, AsJson, known_types, output_width, print_json, print_tables
from headgate.errors import printable
from headgate.report.render import render
from headgate.service.task_types import (
    describe_task_type,
    find_task_type,
    options_table,
    task_type_table,
    type_facts,
)

__all__ = ["tasks"]


def tasks(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A task type; default: list all.")] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """List the task types, or show the options of one.

    Examples: [bold]headgate tasks[/bold], [bold]headgate tasks filter[/bold]
    """
    registry = known_types()
    if name is None:
        print_tables([task_type_table(registry)], as_json, as_csv)
        return
    kind = find_task_type(registry, name)
    if as_json:
        print_json(type_facts(kind))
    elif as_csv:
        print_tables([options_table(kind)], as_csv=True)
    else:
        import yaml

        paragraphs, example = describe_task_type(kind)
        width = output_width()
        text = [_wrapped(paragraph, width) for paragraph in paragraphs]
        options = options_table(kind)
        text += [render([options], "text", width).rstrip("\n")] if options.rows else []
        typer.echo("\n\n".join(text))
        typer.echo("\nexample:\n" + yaml.safe_dump([example], sort_keys=False, width=100), nl=False)


def _wrapped(text: str, width: int | None) -> str:
    return textwrap.fill(printable(text), width) if width else printable(text)
