"""Admission limits: the most rows that a fragment takes in per trigger.

Limits lie in small files beside the fragment: the one that somebody has set, and the one that its own speed asks for
(:mod:`headgate.runtime.isolation.admission`). Readers that are ours look into them before every micro-batch, so a new
limit holds from the next one on. A reader that is held back tells how many rows wait.
"""

from __future__ import annotations

from pathlib import Path

from headgate.runtime.state import read_json, write_json

__all__ = ["admit", "limit_of", "set_limit", "tell_waiting", "waiting_in"]


def limit_of(folder: Path | str, otherwise: int) -> int:
    """The limit of the fragment whose folder this is, or ``otherwise`` if it has none."""
    found = [read_json(Path(folder) / name) for name in ("limit.json", "admitted.json")]
    return min((int(rows) for rows in found if rows is not None), default=otherwise)


def set_limit(folder: Path, rows: int | None) -> None:
    """Give a fragment a limit, or none."""
    write_json(folder / "limit.json", rows)


def admit(folder: Path, rows: int | None) -> None:
    """Hold a fragment back to so many rows, or no longer."""
    write_json(folder / "admitted.json", rows)


def tell_waiting(folder: Path | str, rows: int) -> None:
    """Tell how many rows wait because of a limit."""
    if rows or (Path(folder) / "waiting.json").exists():
        (Path(folder) / "waiting.json").write_text(str(rows), encoding="utf-8")


def waiting_in(folder: Path) -> int:
    """How many rows wait in a fragment's source, as far as it has told."""
    try:
        return int((folder / "waiting.json").read_text(encoding="utf-8") or 0)
    except FileNotFoundError:
        return 0
