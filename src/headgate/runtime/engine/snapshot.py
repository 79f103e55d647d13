"""Plan snapshots: what is to run, as an immutable, numbered value.

Everything that a fragment does in an epoch follows from one snapshot. A change never edits one: it publishes the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.documents.document import to_document
from headgate.documents.located import Located
from headgate.errors import unknown
from headgate.model.dataflow import Dataflow
from headgate.model.identity import remembered
from headgate.model.names import DataflowName, Signature
from headgate.model.strategy import StrategyName
from headgate.model.task import Alternate
from headgate.sharing.strategies import QueryGroup, Units
from headgate.tasks.registry import Registry

__all__ = ["Snapshot", "alternate_key"]


_document = remembered(to_document)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The dataflows that run, how they are merged, and the choices made for their tasks (by signature)."""

    number: int = 0
    dataflows: tuple[Dataflow, ...] = ()
    """As their authors wrote them, without duplicates."""

    merged: Mapping[DataflowName, Dataflow] = field(default_factory=dict)
    """As they are run, where that is not as they were written: reading wider streams, or kept apart from others."""

    strategy: StrategyName = StrategyName.HOT
    deployment: Units = field(default_factory=Units)
    """The units that a strategy other than ``hot`` and ``none`` has made."""

    resting: frozenset[str] = frozenset()
    """Fragments that stay although nothing in them is needed: a strategy pauses tasks where they are."""

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
        """The dataflows that are not paused, as they are run."""
        return tuple(self.as_run(dataflow) for dataflow in self.dataflows if dataflow.name not in self.paused)

    @property
    def units(self) -> Mapping[Signature, int]:
        """The unit of each task, where units are cut from each other; empty where they are not."""
        if self.strategy is not StrategyName.INCREMENTAL:
            return {}
        return {task: number for number, unit in self.deployment.groups.items() for task in unit.active | unit.paused}

    def as_run(self, dataflow: Dataflow) -> Dataflow:
        """What runs for a dataflow."""
        return self.merged.get(dataflow.name, dataflow)

    def find(self, name: str) -> Dataflow:
        for dataflow in self.dataflows:
            if dataflow.name == name:
                return dataflow
        names = [dataflow.name for dataflow in self.dataflows]
        raise unknown("UNKNOWN_DATAFLOW", f"no dataflow '{name}' is running", name, names)

    def next(self, **changes: Any) -> Snapshot:
        """The snapshot that follows this one."""
        return replace(self, number=self.number + 1, **changes)

    def as_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "dataflows": [_document(dataflow) for dataflow in self.dataflows],
            "merged": {name: _document(dataflow) for name, dataflow in self.merged.items()},
            "strategy": self.strategy.value,
            "deployment": _stored(self.deployment),
            "resting": sorted(self.resting),
            "paused": sorted(self.paused),
            "active": dict(self.active),
            "partitions": dict(self.partitions),
            "limits": dict(self.limits),
            "since": dict(self.since),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], registry: Registry) -> Snapshot:
        return cls(
            number=stored["number"],
            dataflows=tuple(_dataflow(document, registry) for document in stored["dataflows"]),
            merged={DataflowName(name): _dataflow(flow, registry) for name, flow in stored["merged"].items()},
            strategy=StrategyName(stored["strategy"]),
            deployment=_deployment(stored["deployment"]),
            resting=frozenset(stored["resting"]),
            paused=frozenset(DataflowName(name) for name in stored["paused"]),
            active={Signature(key): value for key, value in stored["active"].items()},
            partitions={Signature(key): value for key, value in stored["partitions"].items()},
            limits={Signature(key): value for key, value in stored["limits"].items()},
            since={Signature(key): value for key, value in stored["since"].items()},
        )


def _dataflow(document: Any, registry: Registry) -> Dataflow:
    from headgate.documents.check import check

    return check(Located(document, "snapshot", lambda: None), registry).dataflow


def _stored(deployment: Units) -> dict[str, Any]:
    parts = {
        number: [sorted(tasks) for tasks in (unit.active, unit.paused, unit.proxies)]
        for number, unit in deployment.groups.items()
    }
    return {"units": parts, "made": deployment.made}


def _deployment(stored: Mapping[str, Any]) -> Units:
    units = {
        int(number): QueryGroup(*(frozenset(map(Signature, tasks)) for tasks in parts))
        for number, parts in stored["units"].items()
    }
    return Units(units, {}, stored["made"])


def alternate_key(alternate: Alternate) -> str:
    """What an alternate does, as a text: the same in every dataflow that has it, whatever it is called there."""
    return f"{alternate.type} {alternate.config.text}"
