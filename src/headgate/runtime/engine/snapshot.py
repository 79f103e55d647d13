"""Plan snapshots: what is to run, as an immutable, numbered value.

Everything that a fragment does in an epoch follows from one snapshot. A change never edits one: it publishes the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from headgate.errors import unknown
from headgate.model.alternate_choice import AlternateChoice
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature
from headgate.model.service_level import ServiceLevel
from headgate.model.strategy import StrategyName
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.running import Submitted
from headgate.sharing.shared_set import SharedSet
from headgate.sharing.strategies import QueryGroup, Units
from headgate.tasks.registry import Registry

__all__ = ["Snapshot"]

_LEVEL = TypeAdapter(ServiceLevel)


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The dataflows that run, the one graph they are merged into, and the choices made for their tasks."""

    shared: SharedSet
    """What is submitted and what runs for it, paused dataflows included."""

    number: int = 0
    stored: Mapping[DataflowName, str] = field(default_factory=dict)
    """Under which name each dataflow is stored, in the order of submission."""

    strategy: StrategyName = StrategyName.HOT
    units: Units = field(default_factory=Units)
    """The query groups that a strategy other than ``hot`` and ``none`` has made."""

    resting: frozenset[str] = frozenset()
    """Fragments that stay although nothing in them is needed: a strategy pauses tasks where they are."""

    paused: frozenset[DataflowName] = frozenset()
    active: Mapping[Signature, str] = field(default_factory=dict)
    """The active alternate of a task, by its key; the one of most value where none is named."""

    partitions: Mapping[Signature, int] = field(default_factory=dict)
    limits: Mapping[Signature, int] = field(default_factory=dict)
    """The most rows that a source hands over per trigger."""

    held: frozenset[Signature] = frozenset()
    """Tasks for which a person has chosen, so that no policy does."""

    chosen: Mapping[Signature, AlternateChoice] = field(default_factory=dict)
    """Since when the active alternate of a task that has several is active, by whom and why."""

    levels: Mapping[DataflowName, ServiceLevel] = field(default_factory=dict)
    """Service levels that were changed while their dataflows ran."""

    since: Mapping[Signature, int] = field(default_factory=dict)
    """Since which snapshot a stateful task has run without a break: one that comes back starts with empty state."""

    @property
    def dataflows(self) -> tuple[Dataflow, ...]:
        """The dataflows as their authors wrote them, without duplicates, with their service levels of now."""
        written = ((name, self.submitted(name).written) for name in self.stored)
        return tuple(
            replace(flow, service_level=self.levels[name]) if name in self.levels else flow for name, flow in written
        )

    @property
    def running(self) -> tuple[Dataflow, ...]:
        """The dataflows that are not paused, as they are run."""
        return tuple(self.submitted(name).dataflow for name in self.stored if name not in self.paused)

    @property
    def signatures(self) -> Iterable[Signature]:
        """The tasks of all dataflows, each after those that feed it."""
        every = (self.submitted(name).signatures.values() for name in self.stored)
        return dict.fromkeys(signature for signatures in every for signature in signatures)

    @property
    def unit_of(self) -> Mapping[Signature, int]:
        """The query group of each task, where groups are cut from each other; empty where they are not."""
        if self.strategy is not StrategyName.INCREMENTAL:
            return {}
        return {task: number for number, group in self.units.groups.items() for task in group.tasks}

    def submitted(self, name: DataflowName) -> Submitted:
        return self.shared.running.submitted[name]

    def find(self, name: str) -> Submitted:
        """A dataflow that is there; raises :class:`~headgate.errors.InputError` with the nearest name."""
        known = DataflowName(name)
        if known not in self.stored:
            raise unknown("UNKNOWN_DATAFLOW", f"no dataflow '{name}' is running", name, self.stored)
        return self.submitted(known)

    def next(self, **changes: Any) -> Snapshot:
        """The snapshot that follows this one."""
        return replace(self, number=self.number + 1, **changes)

    def as_dict(self) -> dict[str, Any]:
        """What a state directory keeps, beside the dataflows."""
        return {
            "number": self.number,
            "dataflows": dict(self.stored),
            "strategy": self.strategy.value,
            "units": _units_stored(self.units),
            "resting": sorted(self.resting),
            "paused": sorted(self.paused),
            "active": dict(self.active),
            "partitions": dict(self.partitions),
            "limits": dict(self.limits),
            "held": sorted(self.held),
            "chosen": {task: [one.alternate, one.at, one.by, one.reason] for task, one in self.chosen.items()},
            "levels": {name: _LEVEL.dump_python(level, mode="json") for name, level in self.levels.items()},
            "since": dict(self.since),
        }

    @classmethod
    def from_dict(
        cls, kept: Mapping[str, Any], read: Callable[[str], Submitted], registry: Registry, semantic: bool = True
    ) -> Snapshot:
        """The snapshot that was kept; ``read`` gives a dataflow by the name under which it is stored."""
        strategy = StrategyName(kept["strategy"])
        shared = SharedSet(registry, semantic and strategy is not StrategyName.NONE)
        for name in kept["dataflows"].values():
            one = read(name)
            shared, _ = shared.merge(SignedDataflow(one.dataflow, one.signatures), one.written)
        return cls(
            shared,
            number=kept["number"],
            stored=kept["dataflows"],
            strategy=strategy,
            units=_units(kept["units"]),
            resting=frozenset(kept["resting"]),
            paused=frozenset(kept["paused"]),
            active=kept["active"],
            partitions=kept["partitions"],
            limits=kept["limits"],
            held=frozenset(kept.get("held", ())),  # one that an earlier version has written has none
            chosen={task: AlternateChoice(*one) for task, one in kept.get("chosen", {}).items()},
            levels={name: _LEVEL.validate_python(level) for name, level in kept.get("levels", {}).items()},
            since=kept["since"],
        )


def _units_stored(units: Units) -> dict[str, Any]:
    groups = {
        number: [sorted(tasks) for tasks in (group.active, group.paused, group.proxies)]
        for number, group in units.groups.items()
    }
    return {"groups": groups, "made": units.made}


def _units(kept: Mapping[str, Any]) -> Units:
    groups = {int(number): QueryGroup(*map(frozenset, tasks)) for number, tasks in kept["groups"].items()}
    return Units(groups, {}, kept["made"])
