"""How commands talk to a running engine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.cli.output import sentence_to_stderr

if TYPE_CHECKING:
    from headgate.api.client import EngineClient

__all__ = ["ask"]


def ask(state: Path, request: Callable[[EngineClient], dict[str, Any]], waiting: str) -> dict[str, Any]:
    """Ask the engine; on a terminal, show that it works."""
    from headgate.api.client import EngineClient

    with EngineClient(state, lambda reason: sentence_to_stderr(f"{reason} Waiting for it.")) as client:
        if not sys.stderr.isatty():
            return request(client)
        from rich.console import Console

        with Console(stderr=True).status(f"{waiting} ..."):
            return request(client)
