"""Dead letters: rows for which tasks raised, kept with the error.

::

    dead_letters/TASK/counts.json            how many rows the task has left out, and what was raised last
    dead_letters/TASK/EPOCH-ORIGIN.json      a delivery of letters: dataflows, task, snapshot, epoch, reasons
    dead_letters/TASK/EPOCH-ORIGIN.N.arrow   its records and errors

Letters are staged and committed with their epoch, and delivered like any output: each once, whatever is killed. They
are bounded; the oldest go first, and are counted still. Everything here can be read while an engine writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from headgate.model.on_error import OnError
from headgate.store.files import read_json, write_json

__all__ = ["DeadLetter", "DeadLetters", "LeftOut", "Letters", "read_letters"]

MOST_ROWS, MOST_BYTES = 10_000, 16_000_000
"""How many dead letters of a task are kept, and how many bytes."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row for which a task raised."""

    task: str
    dataflows: tuple[str, ...]
    error: str
    record: str
    """The row that came in, as JSON."""

    snapshot: int
    epoch: int
    at: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many rows a task has left out since it first raised."""

    skipped: int = 0
    dead_letters: int = 0
    dropped: int = 0
    """Dead letters that are no longer kept."""

    latest: str = ""
    last: Mapping[str, int] = field(default_factory=dict)
    """The last epoch of each origin that is counted."""


@dataclass(frozen=True, slots=True)
class Letters:
    """The letters of a task, by its signature, and an epoch: files of records and errors, with their rows."""

    task: str
    name: str
    dataflows: Sequence[str]
    policy: OnError
    origin: str
    """Where they come from; unique together with task and epoch."""

    snapshot: int
    epoch: int
    files: Sequence[tuple[str, int]]
    reasons: Sequence[str] = ()
    """Known reasons why the task raises, for letters without an error of their own."""


class DeadLetters:
    """Stores the dead letters of epochs; storing them again changes nothing."""

    def __init__(self, folder: Path, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most = most_rows, most_bytes
        self._known: dict[str, LeftOut] = {}
        self._lock = threading.Lock()

    def take(self, letters: Letters) -> None:
        """Keep the letters of a task and an epoch, or only count them if it skips."""
        with self._lock:  # a task may run in several fragments
            before = self.left_out(letters.task)
            # The letters of an origin come in the order of epochs.
            if letters.epoch > before.last.get(letters.origin, -1):
                self._take(letters, before)

    def _take(self, letters: Letters, before: LeftOut) -> None:
        folder = self._folder / letters.task
        folder.mkdir(parents=True, exist_ok=True)
        rows = sum(count for _, count in letters.files)
        latest = _latest(letters.files) or (letters.reasons[-1] if letters.reasons else before.latest)
        skipped, dead, dropped = before.skipped, before.dead_letters, before.dropped
        if letters.policy is not OnError.SKIP:
            self._keep(folder, letters, rows)
            dropped += self._retain(folder)
        if letters.policy is OnError.SKIP:
            skipped += rows
        else:
            dead += rows
        now = LeftOut(skipped, dead, dropped, latest, {**before.last, letters.origin: letters.epoch})
        write_json(folder / "counts.json", asdict(now), "dead-letter-counts")
        self._known[letters.task] = now
        for path, _ in letters.files:
            Path(path).unlink(missing_ok=True)

    def left_out(self, task: str) -> LeftOut:
        """What a task has left out so far."""
        if task not in self._known:
            self._known[task] = LeftOut(**(read_json(self._folder / task / "counts.json") or {}))
        return self._known[task]

    def _keep(self, folder: Path, letters: Letters, rows: int) -> None:
        stem = f"{letters.epoch:010d}-{letters.origin}"
        names, left = [], self._most[0]
        for index, (path, _) in enumerate(letters.files):
            table = _table(path)
            if table is not None and left > 0:
                target = folder / f"{stem}.{index}.arrow"
                kept = table.slice(0, left)
                with pa.OSFile(str(target), "wb") as file, pa.ipc.new_file(file, kept.schema) as writer:
                    writer.write_table(kept)
                left -= kept.num_rows
                names.append(target.name)
        described = {
            "task": letters.name,
            "dataflows": list(letters.dataflows),
            "snapshot": letters.snapshot,
            "epoch": letters.epoch,
            "reasons": list(letters.reasons),
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "rows": rows,
            "files": names,
            "bytes": sum((folder / name).stat().st_size for name in names),
            "dropped": rows - (self._most[0] - left),
        }
        write_json(folder / f"{stem}.json", described, "dead-letters")

    def _retain(self, folder: Path) -> int:
        """Remove the oldest deliveries until the rest is small enough; returns how many letters are gone."""
        deliveries = [(path, read_json(path)) for path in sorted(folder.glob("[0-9]*.json"))]
        # The latest delivery always stays, and has counted what it had to drop itself.
        gone = int(deliveries[-1][1]["dropped"])
        rows = sum(described["rows"] - described["dropped"] for _, described in deliveries)
        size = sum(described["bytes"] for _, described in deliveries)
        by_age = sorted(deliveries, key=lambda item: item[1]["at"])
        for path, described in by_age[:-1]:
            if rows <= self._most[0] and size <= self._most[1]:
                break
            path.unlink()
            for name in described["files"]:
                (folder / name).unlink(missing_ok=True)
            kept = described["rows"] - described["dropped"]
            rows, size, gone = rows - kept, size - described["bytes"], gone + kept
        return gone


def _table(path: str) -> pa.Table | None:
    try:
        with pa.OSFile(path) as file:
            return pa.ipc.open_file(file).read_all()
    except FileNotFoundError:
        return None


def _latest(files: Sequence[tuple[str, int]]) -> str:
    """The last error in the files of a delivery."""
    table = _table(files[-1][0]) if files else None
    error = table.column("error")[-1].as_py() if table is not None and table.num_rows else None
    return error or ""


def read_letters(
    state: Path, wanted: Callable[[str, Sequence[str]], bool] = lambda _task, _dataflows: True
) -> Iterator[DeadLetter]:
    """The dead letters of a state directory, oldest first within each task.

    ``wanted`` is asked with a task's name and its dataflows. What an engine removes meanwhile is passed over.
    """
    deliveries = []
    for path in (state / "dead_letters").glob("*/[0-9]*.json"):
        described = read_json(path)
        if described is not None and wanted(described["task"], described["dataflows"]):
            deliveries.append((described["at"], path, described))
    for at, path, described in sorted(deliveries, key=lambda item: (item[2]["task"], item[0], item[1])):
        reasons = described["reasons"]
        unknown = f"not known for this row; the task has raised {'; '.join(reasons)}" if reasons else "not known"
        for name in described["files"]:
            table = _table(str(path.parent / name))
            for row in [] if table is None else table.to_pylist():
                yield DeadLetter(
                    described["task"],
                    tuple(described["dataflows"]),
                    row["error"] or unknown,
                    row["record"],
                    described["snapshot"],
                    described["epoch"],
                    at,
                )
