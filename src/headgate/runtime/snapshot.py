"""Plan snapshots: what is to run, as an immutable, numbered value.

Everything that a fragment does in an epoch follows from one snapshot. A change never edits one: it publishes the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.errors import InputError, nearest
from headgate.formats.document import to_document
from headgate.formats.located import Located
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature
from headgate.model.registry import Registry
from headgate.model.task import Alternate

__all__ = ["Snapshot", "alternate_key"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The dataflows that run, and the choices made for their tasks (by signature)."""

    number: int = 0
    dataflows: tuple[Dataflow, ...] = ()
    paused: frozenset[DataflowName] = frozenset()
    active: Mapping[Signature, str] = field(default_factory=dict)
    """The active alternate of a task, by :func:`alternate_key`; the one of most value where none is named."""

    partitions: Mapping[Signature, int] = field(default_factory=dict)
    limits: Mapping[Signature, int] = field(default_factory=dict)
    """The most rows that a source hands over per trigger."""

    since: Mapping[Signature, int] = field(default_factory=dict)
    """Since which snapshot a keyed task has run without a break: one that comes back starts afresh."""

    @property
    def running(self) -> tuple[Dataflow, ...]:
        """The dataflows that are not paused."""
        return tuple(dataflow for dataflow in self.dataflows if dataflow.name not in self.paused)

    def find(self, name: str) -> Dataflow:
        for dataflow in self.dataflows:
            if dataflow.name == name:
                return dataflow
        names = [dataflow.name for dataflow in self.dataflows]
        near = nearest(name, names)
        hint = f"did you mean '{near}'?" if near else f"there is {', '.join(names) or 'none'}"
        raise InputError("UNKNOWN_DATAFLOW", f"no dataflow '{name}' is running; {hint}")

    def next(self, **changes: Any) -> Snapshot:
        """The snapshot that follows this one."""
        return replace(self, number=self.number + 1, **changes)

    def as_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "dataflows": [to_document(dataflow) for dataflow in self.dataflows],
            "paused": sorted(self.paused),
            "active": dict(self.active),
            "partitions": dict(self.partitions),
            "limits": dict(self.limits),
            "since": dict(self.since),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], registry: Registry) -> Snapshot:
        from headgate.checking import check

        documents: Iterable[Any] = stored["dataflows"]
        flows = [check(Located(document, "snapshot", lambda: None), registry).dataflow for document in documents]
        return cls(
            number=stored["number"],
            dataflows=tuple(flows),
            paused=frozenset(DataflowName(name) for name in stored["paused"]),
            active={Signature(key): value for key, value in stored["active"].items()},
            partitions={Signature(key): value for key, value in stored["partitions"].items()},
            limits={Signature(key): value for key, value in stored["limits"].items()},
            since={Signature(key): value for key, value in stored["since"].items()},
        )


def alternate_key(alternate: Alternate) -> str:
    """What an alternate does, as a text: the same in every dataflow that has it, whatever it is called there."""
    return f"{alternate.type} {alternate.config.text}"
