"""What the commands that reach a running engine have in common."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headgate.control.client import ask

__all__ = ["AsJson", "State", "asked", "counted"]

State = Annotated[Path, typer.Option("--state", metavar="DIR", help="The state directory of the engine.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def asked(state: Path, request: Mapping[str, Any], meanwhile: str) -> dict[str, Any]:
    """Ask the engine, and show on a terminal that it is at work."""
    if not sys.stderr.isatty():
        return ask(state, request)
    with Console(stderr=True).status(f"{meanwhile} ..."):
        return ask(state, request)


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "task"), counted(2, "task")
    ('1 task', '2 tasks')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
