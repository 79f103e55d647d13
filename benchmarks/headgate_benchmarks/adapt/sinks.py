"""What the dataflows of ``headgate bench adapt`` do to rows, and where their sinks note what came out.

A sink's file has a line for each row: its number, when it was there, and the alternate that made it. It is all that the
judge gets to know of the engine.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "compute", "noted_a", "noted_b", "noted_c", "wait"]

FOLDER = "HEADGATE_ADAPT_SINKS"
"""The variable of the environment that names the folder of the sinks' files."""

ROUNDS_PER_S = 12_000_000
"""Additions that a core of today makes in a second, about; what they really take is measured."""


def wait(row: dict[str, Any], seconds: float, way: str) -> dict[str, Any]:
    """Hold a core without using it, as a call to a remote service does."""
    time.sleep(seconds)
    return {**row, "way": way}


def compute(row: dict[str, Any], seconds: float, way: str) -> dict[str, Any]:
    """Use a core."""
    total = 0
    for number in range(int(seconds * ROUNDS_PER_S)):
        total += number
    return {**row, "way": way}


def noted_a(rows: list[dict[str, Any]], epoch: int) -> None:
    del epoch
    _note("a", rows)


def noted_b(rows: list[dict[str, Any]], epoch: int) -> None:
    del epoch
    _note("b", rows)


def noted_c(rows: list[dict[str, Any]], epoch: int) -> None:
    del epoch
    _note("c", rows)


def _note(name: str, rows: list[dict[str, Any]]) -> None:
    at = time.time()
    lines = (json.dumps({"id": row["id"], "at": at, "label": {"score": row["way"]}}) + "\n" for row in rows)
    with (Path(os.environ[FOLDER]) / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(lines))
