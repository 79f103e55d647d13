"""Who did what: changes, from the journal in which they are, and refusals, from a file of limited size."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.access.principal import Principal
from headgate.errors import HeadgateError, printable, shorten
from headgate.model.table import Table, TableColumn
from headgate.store.entries import Audited
from headgate.store.journal import read_journal

__all__ = ["RefusalLog", "audit", "audit_table"]

MOST_BYTES = 4_000_000
"""How large the file of refusals becomes; then it takes the place of the one before."""

COLUMNS = (
    TableColumn("when", "when"),
    TableColumn("principal", "who"),
    TableColumn("role", "role"),
    TableColumn("origin", "from"),
    TableColumn("action", "action"),
    TableColumn("objects", "what"),
    TableColumn("outcome", "result"),
)


class RefusalLog:
    """Notes what was refused. It keeps the last ones: a flood of requests must not fill the disk."""

    def __init__(self, state: Path) -> None:
        self._file = state / "refusals.jsonl"
        self._lock = threading.Lock()

    def note(self, who: Principal, action: str, error: HeadgateError) -> None:
        """Note one refusal."""
        entry = Audited(
            time.time(), who.name, who.role.value, who.origin, action[:200], (), error.condition, error.message[:500]
        )
        with self._lock, suppress(OSError):  # a full disk must not change what is answered
            with self._file.open("a", encoding="utf-8", errors="replace") as file:
                file.write(json.dumps(asdict(entry)) + "\n")
                size = file.tell()
            self._file.chmod(0o600)
            if size > MOST_BYTES:
                self._file.replace(_older(self._file))

    def read(self) -> Iterator[Audited]:
        """What was refused, oldest first."""
        for file in (_older(self._file), self._file):
            with suppress(OSError), file.open(encoding="utf-8") as lines:
                for line in lines:
                    with suppress(ValueError, TypeError):  # a crash has cut it short
                        yield Audited(**{**json.loads(line), "objects": ()})


def audit(state: Path, since: float = 0.0, most: int = 1_000) -> list[dict[str, Any]]:
    """Changes and refusals after a moment, the newest if there are too many, oldest first."""
    changes = [entry for _, entry in read_journal(state / "journal", Audited)]
    entries = [entry for entry in (*changes, *RefusalLog(state).read()) if entry.at > since]
    return [asdict(entry) for entry in sorted(entries, key=lambda entry: entry.at)[-most:]]


def audit_table(entries: list[dict[str, Any]]) -> Table:
    """Changes and refusals as a table."""
    rows = tuple(
        {
            **{name: printable(str(value)) for name, value in entry.items()},
            "when": datetime.fromtimestamp(entry["at"], UTC).strftime("%Y-%m-%d %H:%M:%S"),
            "objects": printable(", ".join(entry["objects"])) or shorten(entry["message"], 80).strip("'\""),
        }
        for entry in entries
    )
    return Table("Changes and refusals", COLUMNS, rows)


def _older(file: Path) -> Path:
    return file.with_name(f"{file.name}.1")
