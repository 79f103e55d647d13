"""Functions that dataflows of the tests name."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

CALLS: dict[int, list[dict[str, Any]]] = {}
"""What :func:`note` was given, by epoch."""

REFUSE = threading.Event()


def note(rows: list[dict[str, Any]], epoch: int) -> None:
    if REFUSE.is_set():
        raise ConnectionError("nobody answers")
    CALLS.setdefault(epoch, []).extend(rows)


def twice(row: dict[str, Any], factor: int = 2) -> list[dict[str, Any]] | None:
    """Drops every third row, and makes two of each other."""
    return None if row["id"] % 3 == 0 else [{"id": row["id"], "w": row["v"] * n} for n in (1, factor)]


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(v=frame["v"] * 10)[frame["id"] % 2 == 0]


def shouted(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(1, "k", pc.utf8_upper(batch.column(1)))


def broken(row: dict[str, Any]) -> dict[str, Any]:
    raise ValueError(f"cannot stand {row['id']}")


AGES_S: dict[str, list[float]] = {}


def stamped(rows: list[dict[str, Any]], epoch: int) -> None:
    """Notes how old rows are when they arrive, by the time stamps that they carry."""
    del epoch
    now = time.time()
    for row in rows:
        AGES_S.setdefault(row["name"], []).append(now - row["timestamp"].timestamp())


NOTED = Path()
"""Where rows at sinks are noted."""


def noted(rows: list[dict[str, Any]], epoch: int) -> None:
    """Notes when rows are there, and how they were made, in a file for each sink."""
    del epoch
    now = time.time()
    for sink in {row["sink"] for row in rows}:
        lines = [{"id": row["id"], "at": now, "label": {"score": row["way"]}} for row in rows if row["sink"] == sink]
        with (NOTED / f"{sink}.jsonl").open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def burning(row: dict[str, Any], rounds: int = 20) -> dict[str, Any]:
    """Costs the CPU something."""
    text = str(row["text"]).encode()
    for _ in range(rounds):
        text = hashlib.sha256(text).digest()
    return {**row, "text": text.hex()}


def same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def waiting(row: dict[str, Any]) -> dict[str, Any]:
    """Waits for somebody who takes two milliseconds to answer."""
    time.sleep(0.002)
    return row


def picky(row: dict[str, Any]) -> dict[str, Any]:
    if row["id"] % 5 == 3:
        raise ValueError(f"cannot stand {row['id']}")
    return row


def picky_frame(frame: pd.DataFrame) -> pd.DataFrame:
    if (frame["id"] % 5 == 3).any():
        raise ValueError("cannot stand some")
    return frame


def picky_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    if pc.any(pc.equal(pc.bit_wise_and(batch.column("id"), 3), 3)).as_py():
        raise ValueError("cannot stand some")
    return batch


def misfit(row: dict[str, Any]) -> dict[str, Any]:
    """Returns something that is no number for some rows, which only shows when the batch is put together."""
    return {**row, "v": "no number" if row["id"] % 5 == 3 else row["v"]}


def drowsy(row: dict[str, Any], seconds: float = 3600.0) -> dict[str, Any]:
    try:
        time.sleep(seconds)
    except Exception:  # and catches whatever it can
        return row
    return row


def moody(row: dict[str, Any]) -> dict[str, Any]:
    """Does what the row says."""
    if row["mood"] == "raise":
        raise ValueError(f"cannot stand {row['id']}")
    if row["mood"] == "sleep":
        time.sleep(3600)
    return row


def look_around(row: dict[str, Any]) -> dict[str, Any]:
    """What a function sees of the process that it is in."""
    import resource

    began_with = Path("/proc/self/environ").read_bytes().decode("utf-8", "replace")
    seen = {
        "names": sorted(os.environ),
        "began_with": began_with,
        "memory": resource.getrlimit(resource.RLIMIT_DATA)[0],
    }
    return {"id": row["id"], "seen": json.dumps(seen)}


def take_memory(row: dict[str, Any]) -> dict[str, Any]:
    """Ask for more memory than there is for a worker."""
    return {**row, "k": str(len(bytearray(6 << 30)))}
