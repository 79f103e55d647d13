"""Random dataflows over few kinds of steps, so that they overlap: exactly, and by what their filters mean."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.sharing.deduplicate import deduplicate

COLUMNS = "id long, k string, g long, v double, text string"
FILTERS = ("v > 0", "v > 10", "v > 10 and g > 2", "g > 2", "g > 2 and v > 0", "v is null or g < 6")
DERIVED = ({"w": "v * 2"}, {"w": "v * 2", "n": "g + 1"}, {"v": "v + 1"})
KEYED: tuple[dict[str, Any], ...] = (
    {"type": "count", "config": {"key": ["k"]}},
    {"type": "moving_average", "config": {"key": ["k"], "column": "v", "size": 3, "into": "s"}},
    {"type": "dedup", "config": {"key": ["k", "g"]}},
)


def source_in(folder: Path) -> dict[str, Any]:
    return {"type": "read_files", "config": {"path": str(folder), "columns": COLUMNS, "files_per_batch": 1}}


def random_flow(name: str, folder: Path, draw: random.Random) -> Dataflow:
    """A chain that may branch off, with at most one keyed task on each way."""
    tasks: list[dict[str, Any]] = [{"id": "source", **source_in(folder)}]
    for number in range(draw.randint(1, 4)):
        keyed = any(task["type"] in {work["type"] for work in KEYED} for task in tasks)
        before = tasks[-1]["id"] if draw.random() < 0.8 else draw.choice(tasks)["id"]
        tasks.append({"id": f"t{number}", **_step(draw, keyed), "inputs": [before]})
    ends = [tasks[-1], draw.choice(tasks)][: draw.randint(1, 2)]
    for number, before in enumerate(ends):
        sink = {"type": "write_memory", "config": {"name": f"{name}.{number}"}}
        tasks.append({"id": f"out{number}", **sink, "inputs": [before["id"]]})
    return deduplicate(parse(json.dumps({"name": name, "tasks": tasks}), "json").dataflow).dataflow


def _step(draw: random.Random, keyed: bool) -> dict[str, Any]:
    kind = draw.choice(("filter", "filter", "filter", "derive", "tokenise", "keyed", "select"))
    if kind == "filter":
        return {"type": "filter", "config": {"where": draw.choice(FILTERS)}}
    if kind == "keyed" and not keyed:
        return draw.choice(KEYED)
    if kind == "tokenise":
        return {"type": "tokenise", "config": {"column": "text"}}
    if kind == "select":
        return {"type": "select", "config": {"columns": ["id", "k", "g", "v", "text"]}}
    return {"type": "derive", "config": {"columns": draw.choice(DERIVED)}}
