"""Small dataflows, small files and patience, for tests of the engine."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.model.start import Start
from headgate.runtime.engine.engine import Engine
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.store.entries import EpochCommitted

COLUMNS = "id long, k string, v double"
Rows = list[dict[str, Any]]


def flow(name: str, *tasks: Mapping[str, Any]) -> Dataflow:
    """A dataflow of tasks as they stand in a file; each reads the one before it unless it says otherwise."""
    made: list[dict[str, Any]] = []
    for task in tasks:
        before = {"inputs": [made[-1]["id"]]} if made and "inputs" not in task and not _is_source(task) else {}
        made.append({"id": f"t{len(made)}", **before, **task})
    return parse(json.dumps({"name": name, "tasks": made}), "json").dataflow


def _is_source(task: Mapping[str, Any]) -> bool:
    return task.get("type") in (
        "read_files",
        "replay",
        "rate",
        "read_socket",
        "read_kafka",
        "read_mqtt",
        "generate",
        "read_stream",
    )


def beside(dataflow: Dataflow, other: str) -> Dataflow:
    """The dataflow, beginning where another one stands and sharing what that has counted."""
    return replace(dataflow, start=Start.parse(f"with {other}"))


def files(folder: Path, **options: Any) -> dict[str, Any]:
    return {"type": "read_files", "config": {"path": str(folder), **({"columns": COLUMNS} | options)}}


def memory(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "write_memory", "config": {"name": name}, **more}


def put(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add a file of JSON lines, which appears whole."""
    put_text(folder, f"{name}.json", "".join(json.dumps(row) + "\n" for row in rows))


def put_text(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text(text, encoding="utf-8")
    hidden.rename(folder / name)


def numbered(first: int, count: int) -> Rows:
    return [{"id": i, "k": f"k{i % 3}", "v": i * 0.5 - 2} for i in range(first, first + count)]


def multiset(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Rows as a multiset, whatever the order of rows and columns."""
    return Counter(repr(sorted((name, _plain(value)) for name, value in row.items())) for row in rows)


def _plain(value: object) -> object:
    """A time as text: the same moment has several forms."""
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def json_rows(folder: Path) -> Rows:
    found = sorted(folder.glob("*.json"))
    return [json.loads(line) for file in found for line in file.read_text(encoding="utf-8").splitlines()]


def wait_for(condition: Callable[[], object], what: str, patience_s: float = 180.0) -> None:
    """Wait until something holds; no longer than patience lasts, which is for a busy machine."""
    until = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < until, f"waited in vain: {what}"
        time.sleep(0.05)


def ran_by(engine: Engine, fragment: RunningFragment) -> dict[int, int]:
    """The snapshot that each epoch of a fragment ran."""
    commits = [entry for _, entry in engine.journal.read(EpochCommitted)]
    return {entry.epoch: entry.snapshots[0] for entry in commits if entry.origin == fragment.begun.origin}
