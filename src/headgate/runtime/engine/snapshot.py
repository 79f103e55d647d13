"""Plan snapshots: what is to run, as an immutable, numbered value.

Everything that a fragment does in an epoch follows from one snapshot. A change never edits one: it publishes the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from headgate.errors import unknown
from headgate.model.alternate_choice import AlternateChoice
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.model.service_level import ServiceLevel
from headgate.model.strategy import StrategyName
from headgate.runtime.engine.past import Begin, CatchUp, Reading, SinkTurn
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.past import dataflow_of, past_name
from headgate.sharing.running import Submitted
from headgate.sharing.shared_set import SharedSet
from headgate.sharing.strategies import QueryGroup, Units
from headgate.tasks.registry import Registry
from headgate.tasks.source_folder import Extent

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
    """Since which snapshot a stateful task has run without a break: one that comes back starts with empty state.

    And since which a source has been read, paused or not.
    """

    begins: Mapping[DataflowName, Begin] = field(default_factory=dict)
    """From where dataflows count that do not count from the earliest."""

    readings: Mapping[Signature, Reading] = field(default_factory=dict)
    """The sources that do not read all there is."""

    catch_ups: Mapping[DataflowName, CatchUp] = field(default_factory=dict)
    """The dataflows whose past is being computed."""

    abandoned: Mapping[Signature, int] = field(default_factory=dict)
    """Sinks of dataflows that were withdrawn before they had caught up, and since which snapshot they are gone."""

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
        names = (*self.stored, *map(past_name, self.catch_ups))
        every = (self.submitted(name).signatures.values() for name in names)
        return dict.fromkeys(signature for signatures in every for signature in signatures)

    def due(self, sink: Signature, number: int) -> SinkTurn:
        """What is to become of rows for a sink that were made under snapshot ``number``."""
        if number < self.abandoned.get(sink, 0):
            return SinkTurn.NEVER
        held = any(sink in one.sinks.values() for one in self.catch_ups.values())
        return SinkTurn.LATER if held else SinkTurn.NOW

    def copies_before(self, task: Signature) -> Mapping[Signature, Signature]:
        """The copies whose rows a task gets before those of the running tasks that they are copies of."""
        return next((one.copies for one in self.catch_ups.values() if task in one.handed), {})

    def catching_up(self, dataflow: str, task: str) -> Signature | None:
        """A source that computes the past of a dataflow, by the name that the dataflow has for it."""
        if dataflow not in self.catch_ups:
            return None
        signature = self.submitted(past_name(DataflowName(dataflow))).signatures.get(TaskId(task))
        return signature if signature in self.readings else None

    def copies_of(self, task: Signature) -> Iterator[Signature]:
        """What does the same as a running task for the past of those that catch up."""
        for name in self.catch_ups:
            live, copies = self.submitted(name).signatures, self.submitted(past_name(name)).signatures
            yield from (copy for known, copy in copies.items() if live.get(known) == task)

    def extent(self, source: Signature) -> Extent | None:
        """From where and up to where a source reads, if that is not all there is.

        The past of dataflows that are all paused rests.
        """
        reading, used = self.readings.get(source), self.shared.running.tasks.get(source)
        if reading is None:
            return None
        rests = used is not None and all(dataflow_of(user) in self.paused for user in used.users)
        since = reading.modified_since_ns, reading.arrived_since_ns
        return Extent(reading.bounded, *since, paused=reading.bounded and rests, earliest=reading.earliest)

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

    def tidied(self, gone: Iterable[Signature]) -> Snapshot:
        """Without what was chosen for tasks that are gone, where nobody else uses them."""
        left = [task for task in gone if task in self.readings and task not in self.shared.running.tasks]
        if not left:
            return self
        return replace(self, readings={task: one for task, one in self.readings.items() if task not in left})

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
            "begins": {name: begin.as_dict() for name, begin in self.begins.items()},
            "readings": {source: reading.as_dict() for source, reading in self.readings.items()},
            "catch_ups": {name: one.as_dict() for name, one in self.catch_ups.items()},
            "abandoned": dict(self.abandoned),
        }

    @classmethod
    def from_dict(
        cls, kept: Mapping[str, Any], read: Callable[[str], Submitted], registry: Registry, semantic: bool = True
    ) -> Snapshot:
        """The snapshot that was kept; ``read`` gives a dataflow by the name under which it is stored."""
        strategy = StrategyName(kept["strategy"])
        shared = SharedSet(registry, semantic and strategy is not StrategyName.NONE)
        catch_ups = {name: CatchUp.from_dict(one) for name, one in kept.get("catch_ups", {}).items()}
        for name in (*kept["dataflows"].values(), *(one.stored for one in catch_ups.values())):
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
            begins={name: Begin(**begin) for name, begin in kept.get("begins", {}).items()},
            readings={source: Reading.from_dict(one) for source, one in kept.get("readings", {}).items()},
            catch_ups=catch_ups,
            abandoned=kept.get("abandoned", {}),
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
