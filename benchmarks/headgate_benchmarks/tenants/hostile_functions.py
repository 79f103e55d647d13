"""Functions of a module that a hostile submitter may call: they harm themselves, as far as a worker lets them."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["end_process", "end_thread", "grow", "leave", "look", "refuse", "spin"]


def end_process(row: dict[str, Any]) -> dict[str, Any]:
    """End the worker."""
    if row["id"] >= 0:
        os._exit(3)
    return row


def leave(row: dict[str, Any]) -> dict[str, Any]:
    """Leave politely."""
    del row
    sys.exit(3)


def end_thread(row: dict[str, Any]) -> dict[str, Any]:
    """Raise what few catch."""
    del row
    raise KeyboardInterrupt


def refuse(row: dict[str, Any]) -> dict[str, Any]:
    """Raise, with a message of a megabyte."""
    del row
    raise ValueError("x" * 1_000_000)


def grow(row: dict[str, Any]) -> dict[str, Any]:
    """Take more memory than there is."""
    return {**row, "k": str(len(bytearray(64 << 30)))}


def spin(row: dict[str, Any]) -> dict[str, Any]:
    """Never come back."""
    while True:
        row["v"] = 1.0


def look(row: dict[str, Any]) -> dict[str, Any]:
    """Tell of the environment."""
    return {**row, "k": " ".join([*os.environ, *os.environ.values()])}
