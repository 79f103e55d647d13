"""The plan log: which snapshot each epoch of a fragment ran, durable before the epoch runs.

Only changes are written: an entry ``[epoch, snapshot]`` holds from its epoch on. Only the last few entries are needed
to go on after a failure; the others are history, and the oldest are dropped.
"""

from __future__ import annotations

from pathlib import Path

from headgate.store.files import read_json, write_json

__all__ = ["PlanLog"]

ENTRIES = 10_000


class PlanLog:
    """The plan log of one fragment.

    >>> import tempfile
    >>> log = PlanLog(Path(tempfile.mkdtemp()) / "plan_log.json")
    >>> log.record(0, 1), log.record(1, 1), log.record(7, 2)
    (None, None, None)
    >>> log.at(5), log.at(7), log.entries
    (1, 2, ((0, 1), (7, 2)))
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: list[tuple[int, int]] = [(epoch, number) for epoch, number in read_json(path) or []]

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """First epoch and snapshot of each run of epochs."""
        return tuple(self._entries)

    def at(self, epoch: int) -> int | None:
        """The snapshot of an epoch that has run or was about to; ``None`` if there was none so early."""
        return next((number for first, number in reversed(self._entries) if first <= epoch), None)

    def record(self, epoch: int, number: int) -> None:
        """Make durable that an epoch runs a snapshot."""
        if self.at(epoch) != number:
            kept = [entry for entry in self._entries if entry[0] < epoch]
            self._entries = [*kept, (epoch, number)][-ENTRIES:]
            write_json(self._path, self._entries, "plan-log")
