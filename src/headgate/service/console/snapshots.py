"""The plan snapshots that a journal still has: when each came, and what it changed."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.store.entries import Audited, SnapshotPublished
from headgate.store.journal import Journal

__all__ = ["SnapshotStep", "snapshot_steps"]


@dataclass(frozen=True, slots=True)
class SnapshotStep:
    """A plan snapshot; who made it is for admins."""

    number: int
    at: float | None
    """In seconds since 1970; not known of what no person has asked for."""

    action: str
    objects: tuple[str, ...]
    principal: str | None
    dataflows: int


def snapshot_steps(journal: Journal, with_principals: bool) -> tuple[SnapshotStep, ...]:
    """The kept snapshots, oldest first."""
    audited = dict(journal.read(Audited))
    steps = []
    for position, published in journal.read(SnapshotPublished):
        noted = audited.get(position)
        count = len(published.snapshot.get("dataflows", ()))
        if noted is None:
            steps.append(SnapshotStep(published.number, None, "change", (), None, count))
        else:
            who = noted.principal if with_principals else None
            steps.append(SnapshotStep(published.number, noted.at, noted.action, noted.objects, who, count))
    return tuple(steps)
