"""The backlog of a fragment: rows that have arrived and that no finished epoch has processed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.file_source.listing import rows_since
from headgate.runtime.spark_internals.checkpoint import Checkpoint
from headgate.tasks.replay import is_played, recorded_rows
from headgate.tasks.source_folder import due_in, read_note

__all__ = ["Backlog"]

STALE_S = 2.0
"""While an epoch takes longer than that, its source does not look: what comes meanwhile is looked for here."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Counts the rows that wait in a fragment's topics and at its source."""

    folder: Path
    checkpoint: Checkpoint
    exchange: FileExchange
    topics: Callable[[], Sequence[str]]
    is_active: Callable[[], bool]
    """Whether the query runs."""

    def rows(self) -> int | None:
        """Rows in its topics, or at its source; ``None`` if the source does not report them, or not yet."""
        return self._in_topics() if self.topics() else self._at_source()

    def bytes(self) -> int | None:
        """Bytes at its source that later epochs will read; ``None`` if the source does not report them."""
        due = due_in(self.folder)
        return None if due is None else due.bytes

    def throttled(self) -> int:
        """Rows in its topics, and those at its source that a limit keeps waiting."""
        due = due_in(self.folder)
        return self._in_topics() + (0 if due is None else due.throttled)

    def waits(self) -> str | None:
        """Why its source cannot say what there is, if it waits for somebody."""
        reason: str | None = read_note(self.folder, "waits.json")
        return reason

    def is_empty(self) -> bool:
        """Whether all rows have been read, as far as can be known."""
        return self.throttled() == 0 and is_played(self.folder, self._rows_played())

    def _in_topics(self) -> int:
        return sum(self.exchange.rows_behind(topic) for topic in self.topics())

    def _at_source(self) -> int | None:
        due = due_in(self.folder)
        if due is None:
            return None
        now = time.time()
        arrived = due.by(now) if self.is_active() else due.rows
        if due.path and now - due.at > STALE_S:
            arrived += rows_since(due)
        total = recorded_rows(self.folder)
        return max((arrived if total is None else min(arrived, total)) - self._rows_played(), 0)

    def _rows_played(self) -> int:
        """How many rows of a recording the committed epochs have read."""
        done = self.checkpoint.last_committed()
        return 0 if done is None else next(iter(self.checkpoint.offsets(done, "rows")), 0)
