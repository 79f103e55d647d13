"""Dead letters: rows for which tasks raised, kept with the error.

::

    dead_letters/TASK/counts.json            how many rows the task has left out, and what was raised last
    dead_letters/TASK/EPOCH-ORIGIN.json      a delivery of letters: dataflows, task, snapshot, epoch, reasons
    dead_letters/TASK/EPOCH-ORIGIN.N.arrow   its records and errors

Letters are staged and committed with their epoch, and delivered like any output: each once, whatever is killed. They
are bounded; the oldest go first, and are counted still. Everything here can be read while an engine writes. Letters
that have been offered again to their task are no longer those of the dataflows for which that was done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.model.on_error import OnError
from headgate.store.files import read_json, write_json

__all__ = ["DeadLetter", "DeadLetters", "LeftOut", "LetterDelivery", "Letters", "read_letters"]

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

    redriven: int = 0
    """Dead letters that all their dataflows have had again."""

    last_redrive: str = ""
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

    called: Mapping[str, str] = field(default_factory=dict)
    """What each dataflow calls the task."""


@dataclass(frozen=True, slots=True)
class LetterDelivery:
    """The letters of an epoch, as they are kept."""

    task: str
    """The signature of the task."""

    stem: str
    """What its files are called."""

    dataflows: tuple[str, ...]
    """Those that have not had them again."""

    records: tuple[str, ...]


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
        last = {**before.last, letters.origin: letters.epoch}
        counts = replace(before, skipped=skipped, dead_letters=dead, dropped=dropped, latest=latest, last=last)
        self._count(letters.task, counts)
        for path, _ in letters.files:
            Path(path).unlink(missing_ok=True)

    def _count(self, task: str, counts: LeftOut) -> None:
        write_json(self._folder / task / "counts.json", asdict(counts), "dead-letter-counts")
        self._known[task] = counts

    def of(self, dataflow: str, wanted: Callable[[str, str], bool]) -> list[LetterDelivery]:
        """The letters of a dataflow, oldest first; ``wanted`` is asked with a task's signature and its name there."""
        with self._lock:  # none is removed meanwhile
            return sorted(self._deliveries(dataflow, wanted), key=lambda one: (one.task, one.stem))

    def _deliveries(self, dataflow: str, wanted: Callable[[str, str], bool]) -> Iterator[LetterDelivery]:
        for path in self._folder.glob("*/[0-9]*.json"):
            described = read_json(path)
            if described is None:
                continue
            left, task = _left(described), path.parent.name
            if dataflow in left and wanted(task, _name(described, dataflow)):
                tables = [
                    table for name in described["files"] if (table := _table(str(path.parent / name))) is not None
                ]
                records = [record for table in tables for record in table.column("record").to_pylist()]
                yield LetterDelivery(task, path.stem, left, tuple(records))

    def settle(self, redrive: str, deliveries: Collection[tuple[str, str]], dataflows: Collection[str]) -> None:
        """Some dataflows have had deliveries again, given by signature and stem; doing it again changes nothing."""
        with self._lock:
            for task in {task for task, _ in deliveries}:
                self._settle(redrive, task, [stem for of, stem in deliveries if of == task], set(dataflows))

    def _settle(self, redrive: str, task: str, stems: Collection[str], dataflows: set[str]) -> None:
        folder, before = self._folder / task, self.left_out(task)
        known = [(path, described) for stem in stems if (described := read_json(path := folder / f"{stem}.json"))]
        gone = [(path, described) for path, described in known if dataflows.issuperset(_left(described))]
        if before.last_redrive != redrive:
            rows = sum(described["rows"] - described["dropped"] for _, described in gone)
            self._count(task, replace(before, redriven=before.redriven + rows, last_redrive=redrive))
        for path, described in known:
            if (path, described) in gone:
                path.unlink()
                for name in described["files"]:
                    (folder / name).unlink(missing_ok=True)
            else:
                again = sorted(dataflows.union(described.get("redriven", ())))
                write_json(path, {**described, "redriven": again}, "dead-letters")

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
            "called": dict(letters.called),
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


def _left(described: Mapping[str, Any]) -> tuple[str, ...]:
    """The dataflows of a delivery that have not had it again."""
    return tuple(name for name in described["dataflows"] if name not in described.get("redriven", ()))


def _name(described: Mapping[str, Any], dataflow: str | None = None) -> str:
    """What a dataflow calls the task; if none is given, one for which they are still there."""
    name: str = described["task"]
    left, called = _left(described), described.get("called", {})
    if dataflow is None:
        dataflow = name.partition(".")[0] if name.partition(".")[0] in left or not left else left[0]
    return f"{dataflow}.{called[dataflow]}" if dataflow in called else name


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
        if described is not None and wanted(_name(described), _left(described)):
            deliveries.append((described["at"], path, described))
    for at, path, described in sorted(deliveries, key=lambda item: (item[2]["task"], item[0], item[1])):
        reasons = described["reasons"]
        unknown = f"not known for this row; the task has raised {'; '.join(reasons)}" if reasons else "not known"
        for name in described["files"]:
            table = _table(str(path.parent / name))
            for row in [] if table is None else table.to_pylist():
                yield DeadLetter(
                    _name(described),
                    _left(described),
                    row["error"] or unknown,
                    row["record"],
                    described["snapshot"],
                    described["epoch"],
                    at,
                )
