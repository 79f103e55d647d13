"""Admission limits: the most rows that a fragment takes in per trigger.

The limit lies in a small file beside the fragment. Readers that are ours look into it before every micro-batch, so a
new limit holds from the next one on.
"""

from __future__ import annotations

from pathlib import Path

from headgate.runtime.state import read_json, write_json

__all__ = ["limit_of", "set_limit"]


def limit_of(folder: Path | str, otherwise: int) -> int:
    """The limit of the fragment whose folder this is, or ``otherwise`` if it has none."""
    rows = read_json(Path(folder) / "limit.json")
    return otherwise if rows is None else int(rows)


def set_limit(folder: Path, rows: int | None) -> None:
    """Give a fragment a limit, or none."""
    write_json(folder / "limit.json", rows)
