"""Compaction: the journal is written anew without what nothing can ask for any more.

A snapshot is needed as long as an epoch that names it may run or be run again, rows that carry it wait in a topic, or
a delivery made under it is due.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.exchange.files import FileExchange
from headgate.store.decision_entries import (
    DecisionEnded,
    DecisionMade,
    DecisionVerified,
    StepChanged,
    TermsRecorded,
)
from headgate.store.entries import (
    Acknowledged,
    Audited,
    DataflowStored,
    Delivered,
    Entry,
    EpochCommitted,
    FragmentBegun,
    FragmentRemoved,
    LettersRedriven,
    SnapshotPublished,
    TokenStored,
)
from headgate.store.files import read_json
from headgate.store.journal import Journal

__all__ = ["compact_journal", "kept_decisions", "oldest_under_way"]


def oldest_under_way(
    fragments: Iterable[RunningFragment],
    last: Iterable[CompiledPlan],
    exchange: FileExchange,
    pending: Path,
    current: int,
) -> int:
    """The oldest snapshot that work under way may name; ``last`` are the plans of fragments that are being drained."""
    numbers = [current, *(plan.number for plan in last), *_due(pending)]
    for fragment in fragments:
        numbers += fragment.snapshots_under_way()
        numbers += filter(None, map(exchange.oldest_snapshot, fragment.topics()))
    return min(numbers)


def _due(pending: Path) -> Iterator[int]:
    for file in pending.glob("*/*/delivery.json"):
        kept = read_json(file)
        if kept is not None:
            yield kept["snapshot"]


def kept_decisions(journal: Journal) -> dict[int, DecisionMade]:
    """The decisions that must stay: those under way, and the newest of a week."""
    made = sorted(journal.every(DecisionMade), key=lambda each: -each.number)
    since = time.time() - DecisionMade.KEPT_S
    return {
        each.number: each
        for place, each in enumerate(made)
        if place == 0
        or (place < DecisionMade.MOST and each.at > since)
        or journal.latest(DecisionEnded, str(each.number)) is None
    }


def compact_journal(journal: Journal, hosts: Path, oldest: int, begun: Collection[FragmentBegun]) -> None:
    """Remove what is older than snapshot ``oldest``, but for what running fragments began with."""
    needed = {fragment.snapshot for fragment in begun}
    origins = {fragment.origin for fragment in begun}
    snapshots = [one for one in journal.every(SnapshotPublished) if one.number >= oldest or one.number in needed]
    numbers = {snapshot.number for snapshot in snapshots}
    dataflows = {name for snapshot in snapshots for name in snapshot.snapshot["dataflows"].values()}
    dataflows |= {one["stored"] for s in snapshots for one in s.snapshot.get("catch_ups", {}).values()}
    answered, audited = time.time() - Acknowledged.KEPT_S, time.time() - Audited.KEPT_S

    decisions = kept_decisions(journal)
    terms = {made.terms for made in decisions.values()}

    def is_needed(entry: Entry) -> bool:
        match entry:
            case SnapshotPublished():
                return entry.number in numbers
            case DataflowStored():
                return entry.id in dataflows
            case Acknowledged():
                return entry.at >= answered
            case Audited():
                return entry.at >= audited
            case FragmentBegun():
                return entry in begun
            case EpochCommitted() | Delivered():
                return entry.origin in origins
            case FragmentRemoved() | LettersRedriven():  # redrives are finished before the journal is compacted
                return False
            case TermsRecorded():
                return entry.id in terms
            case DecisionMade() | DecisionEnded() | DecisionVerified():
                return entry.number in decisions
            case StepChanged():
                return entry.decision in decisions
            case TokenStored():
                return not entry.revoked
        return True

    journal.compact(is_needed)
    for file in hosts.glob("[0-9]*.json"):
        if int(file.stem) not in numbers:
            file.unlink(missing_ok=True)
