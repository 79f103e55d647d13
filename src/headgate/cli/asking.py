"""Options and helpers of the commands that talk to a running engine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headgate.api.client import EngineClient

__all__ = ["AsJson", "State", "ask", "counted"]

State = Annotated[Path, typer.Option("--state", metavar="DIR", help="The state directory of the engine.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def ask(state: Path, request: Callable[[EngineClient], dict[str, Any]], waiting: str) -> dict[str, Any]:
    """Ask the engine; on a terminal, show that it works."""
    from headgate.api.client import EngineClient

    with EngineClient(state) as client:
        if not sys.stderr.isatty():
            return request(client)
        from rich.console import Console

        with Console(stderr=True).status(f"{waiting} ..."):
            return request(client)


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "task"), counted(2, "task")
    ('1 task', '2 tasks')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
