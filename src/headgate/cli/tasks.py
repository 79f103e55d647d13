"""``headgate tasks``: the library of task types and their options."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from headgate.cli.output import known_types, print_json
from headgate.errors import unknown
from headgate.model.task_type import TaskType
from headgate.tasks.reference import Option, options_of
from headgate.tasks.registry import Registry

__all__ = ["tasks"]


def tasks(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A task type; all of them if left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """List the task types, or show the options of one.

    Examples: [bold]headgate tasks[/bold], [bold]headgate tasks filter[/bold]
    """
    registry = known_types()
    if name is None:
        if as_json:
            print_json([_facts(kind) for kind in registry.values()])
        else:
            _print_list(registry)
        return
    kind = registry.get(name)
    if kind is None:
        raise unknown("UNKNOWN_TASK_TYPE", f"unknown task type {name[:60]!r}", name, registry)
    if as_json:
        print_json(_facts(kind))
    else:
        _print_one(kind)


def _facts(kind: TaskType) -> dict[str, Any]:
    return {
        "name": kind.name,
        "role": kind.role.value,
        "state": kind.state.value,
        "stateful": kind.stateful,
        "package": kind.package,
        "summary": kind.summary,
        "inputs": [port.name for port in kind.ports.inputs],
        "outputs": [port.name for port in kind.ports.outputs],
        "ports_declared": kind.ports_declared,
        "options": [
            {"name": o.name, "type": o.type, "required": o.required, "default": o.default, "description": o.description}
            for o in options_of(kind)
        ],
        "example": dict(kind.config.example),
    }


def _print_list(registry: Registry) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("type", "role", "state", "what it does", box=None, pad_edge=False, header_style="bold")
    for kind in registry.values():
        summary = kind.summary.replace("``", "")
        table.add_row(
            f"[bold]{kind.name}[/bold]", kind.role.value, kind.state.value if kind.stateful else "", escape(summary)
        )
    Console().print(table)


def _print_one(kind: TaskType) -> None:
    import yaml
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    state = f", state: {kind.state.value}" if kind.stateful else ""
    console.print(f"[bold]{kind.name}[/bold] ({kind.role.value}{state})")
    console.print("\n\n".join(_paragraphs(kind)), markup=False)
    ports = (
        ", ".join(port.name for port in kind.ports.inputs) or "none",
        ", ".join(port.name for port in kind.ports.outputs) or "none",
    )
    console.print(
        f"\nports: in: {ports[0]}; out: {ports[1]}" + (" (or as you name them)" if kind.ports_declared else ""),
        markup=False,
    )
    options = options_of(kind)
    if options:
        table = Table("option", "type", "default", "meaning", box=None, pad_edge=False, header_style="bold")
        for option in options:
            table.add_row(
                f"[bold]{option.name}[/bold]", escape(option.type), escape(_default(option)), escape(option.description)
            )
        console.print()
        console.print(table)
    example: dict[str, Any] = {"id": "example", "type": kind.name}
    if kind.config.example:
        example["config"] = dict(kind.config.example)
    if kind.ports.inputs:
        count = kind.ports.inputs[0].streams_min
        example["inputs"] = ["before"] if count == 1 else ["left", "right"]
    console.print("\nexample:\n" + yaml.safe_dump([example], sort_keys=False, width=100), markup=False, end="")


def _paragraphs(kind: TaskType) -> list[str]:
    """The docstring without the line breaks of its source, so that it fits any terminal."""
    text = inspect.cleandoc(kind.config.__doc__ or "").replace("``", "")
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def _default(option: Option) -> str:
    if option.required:
        return "required"
    if option.default is None:
        return ""
    return option.default if isinstance(option.default, str) else json.dumps(option.default)
