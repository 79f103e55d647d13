"""The options of ``headgate`` itself, which all commands share."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT_OPTIONS", "RootOptions"]


@dataclass(frozen=True, slots=True)
class RootOptions:
    """What comes before the name of a command."""

    config: Path | None = None
    """The file of settings."""

    url: str | None = None
    """The service to speak to."""


NONE = RootOptions()

ROOT_OPTIONS: ContextVar[RootOptions] = ContextVar("ROOT_OPTIONS", default=NONE)
"""Those of the command under way."""
