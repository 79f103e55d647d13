"""Compaction: plan snapshots that nothing can ask for any more are removed.

A snapshot is needed as long as an epoch that names it may run or be run again, rows that carry it wait in a topic, or
a delivery made under it is due. Beyond those, the newest stay as history, as far as their room goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.exchange.files import Exchange
from headgate.store.files import read_json

__all__ = ["HISTORY_BYTES", "oldest_under_way", "remove_snapshots"]

HISTORY_BYTES = 8 * 1024 * 1024


def oldest_under_way(
    fragments: Iterable[RunningFragment], last: Iterable[CompiledPlan], exchange: Exchange, pending: Path, current: int
) -> int:
    """The oldest snapshot that work under way may name; ``last`` are the plans of fragments that are being drained."""
    numbers = [current, *(plan.number for plan in last), *_due(pending)]
    for fragment in fragments:
        numbers += fragment.snapshots_under_way()
        numbers += filter(None, map(exchange.oldest_snapshot, fragment.fragment.reads))
    return min(numbers)


def _due(pending: Path) -> Iterator[int]:
    for file in pending.glob("*/*/delivery.json"):
        kept = read_json(file)
        if kept is not None:
            yield kept["snapshot"]


def remove_snapshots(folders: Collection[Path], oldest: int, others: Collection[int], history_bytes: int) -> int:
    """Remove the numbered files of ``folders`` before ``oldest``, but for ``others`` and as much as makes the history.

    Returns how many numbers are gone.
    """
    sizes: dict[int, int] = {}
    for folder in folders:
        for file in folder.glob("[0-9]*.json"):
            sizes[int(file.stem)] = sizes.get(int(file.stem), 0) + file.stat().st_size
    room, gone = history_bytes, 0
    for number in sorted(sizes, reverse=True):
        room -= sizes[number]
        if room < 0 and number < oldest and number not in others:
            for folder in folders:
                (folder / f"{number}.json").unlink(missing_ok=True)
            gone += 1
    return gone
