"""Functions that tests isolate."""

from __future__ import annotations

import os
import time
from typing import Any

CALLS = [0]


def doubled(row: dict[str, Any], by: float = 2.0) -> dict[str, Any]:
    """Multiply."""
    CALLS[0] += 1
    return {**row, "v": row["v"] * by, "k": f"{os.getpid()} {CALLS[0]}"}


def picky(row: dict[str, Any]) -> dict[str, Any]:
    """Raise for some."""
    if row["id"] % 3 == 0:
        raise ValueError(f"not {row['id']}")
    return row


def endless(row: dict[str, Any]) -> dict[str, Any]:
    """Never answer."""
    while True:
        try:
            time.sleep(1)
        except BaseException:
            continue


def summed(state: float | None, row: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Add up."""
    total = (state or 0.0) + row["v"]
    return total, {"total": total}


def reaching(row: dict[str, Any], path: str = "") -> dict[str, Any]:
    """What a file has."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return {**row, "k": file.read()}
