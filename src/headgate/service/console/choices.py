"""What a plan snapshot says beside its dataflows: which alternate is active, what is paused, limited or held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.documents.decode import from_document
from headgate.errors import InputError
from headgate.model.names import Signature
from headgate.model.task import Alternate, Task
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet
from headgate.store.entries import DataflowStored, SnapshotPublished
from headgate.store.journal import Journal
from headgate.tasks.registry import Registry

__all__ = ["SnapshotChoices", "choices_of", "shared_at"]


@dataclass(frozen=True, slots=True)
class SnapshotChoices:
    """How the tasks of a snapshot are done."""

    paused: frozenset[str] = frozenset()
    """Dataflows."""

    active: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    """Tasks for which a person has chosen."""

    def alternate(self, signature: Signature, task: Task) -> Alternate:
        """The active alternate of a task: the one of most value where none was chosen."""
        wanted = self.active.get(signature)
        for alternate in task.alternates:
            if wanted == f"{alternate.type} {alternate.config.text}":
                return alternate
        return max(task.alternates, key=lambda alternate: alternate.value)


def choices_of(journal: Journal, number: int) -> SnapshotChoices:
    """The choices of a snapshot; none for one that the journal no longer has."""
    entry = journal.latest(SnapshotPublished, str(number))
    kept: Mapping[str, Any] = {} if entry is None else entry.snapshot
    return SnapshotChoices(
        frozenset(kept.get("paused", ())),
        kept.get("active", {}),
        kept.get("partitions", {}),
        kept.get("limits", {}),
        frozenset(kept.get("held", ())),
    )


def shared_at(journal: Journal, number: int, registry: Registry) -> SharedSet:
    """What ran at an earlier snapshot; raises :class:`InputError` if the journal no longer has it."""
    entry = journal.latest(SnapshotPublished, str(number))
    if entry is None:
        there = sorted(one.number for one in journal.every(SnapshotPublished))
        hint = f"those from {there[0]} to {there[-1]} are kept" if there else "none is kept yet"
        raise InputError("SNAPSHOT_GONE", f"plan snapshot {number} is not kept; {hint}", {"snapshot": number})
    shared = SharedSet(registry, semantic=False)
    for name in entry.snapshot.get("dataflows", {}).values():
        stored = journal.latest(DataflowStored, name)
        if stored is not None:
            kept = stored.document
            dataflow = from_document(kept.get("as_run", kept["written"]), registry)
            shared, _ = shared.merge(SignedDataflow(dataflow, kept["signatures"]))
    return shared
