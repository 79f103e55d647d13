"""From a snapshot to fragments: which Spark streaming queries run, and what each does in an epoch. Pure.

The merged graph of all dataflows is cut before stateful tasks and at feedback streams. What is left hangs together
below *roots*, one fragment each:

- a **source** task: a live fragment that reads it;
- a **keyed host**: every keyed task with the same input streams and key columns, in one stateful query;
- a **native** task (event-time window, join): a stateful query of its own;
- a **feedback** stream: a live fragment that reads it back from the exchange;
- a **proxy**: where a strategy keeps units of tasks apart, what a unit reads of a task of another one.

A fragment runs the stateless tasks that its root's rows reach. A task that rows of several roots reach is run in each
of those fragments, for their own rows: it treats each row by itself, so nothing is computed twice. Streams into a
stateful task or back into the graph are handed over through *topics* of the exchange, one per fragment, reader and side
of the reader.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from headgate.errors import InputError
from headgate.model.config import Config, canonical_text
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.identity import remembered
from headgate.model.names import DataflowName, Signature
from headgate.model.on_error import OnError
from headgate.model.stream import ByPredicate, Stream
from headgate.model.task import Alternate, Ports, Task
from headgate.model.task_type import Role, State, TaskConfig, TaskType
from headgate.runtime.engine.snapshot import Snapshot, alternate_key
from headgate.sharing.deduplicate import deduplicate
from headgate.tasks.registry import Registry
from headgate.tasks.stateful import KeyedConfig

__all__ = ["FED", "CompiledPlan", "CompiledTask", "Feed", "Fragment", "Kind", "Topic", "compile_plan"]


class Kind(StrEnum):
    """What a fragment's rows come from."""

    SOURCE = "source"
    KEYED = "keyed"
    NATIVE = "native"
    FEEDBACK = "feedback"
    PROXY = "proxy"


FED = (Kind.FEEDBACK, Kind.PROXY)
"""What begins with rows of a task that other fragments run."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream into a task, by signatures."""

    source: Signature
    source_port: str
    target_port: str
    where: str | None
    side: int | None
    feedback: bool

    @property
    def identity(self) -> str:
        return canonical_text([self.source, self.source_port, self.target_port, self.where, self.side, self.feedback])


@dataclass(frozen=True, slots=True)
class CompiledTask:
    """A task of the merged graph with its active alternate."""

    signature: Signature
    name: str
    alternate: Alternate
    options: TaskConfig
    ports: Ports
    state: State
    role: Role
    feeds: tuple[Feed, ...]
    users: tuple[DataflowName, ...]
    partitions: int | None
    on_error: OnError
    time_budget_s: float | None
    since: int
    """The snapshot since which it has run without a break."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A derived stream in the exchange: what one fragment hands over to another."""

    id: str
    reader: str
    feeds: tuple[Feed, ...]


@dataclass(frozen=True, slots=True)
class Fragment:
    """What one Spark streaming query does."""

    id: str
    kind: Kind
    roots: tuple[Signature, ...]
    """The source or native task, or the keyed tasks of a host in the order of their results.

    Of a feedback fragment the task that the rows come back to, of a proxy the task that it stands for."""

    tasks: tuple[Signature, ...]
    """The stateless tasks it runs, each after those that feed it."""

    feeds: tuple[Feed, ...]
    """The streams that a host, native task, feedback fragment or proxy reads."""

    key: tuple[str, ...]
    writes: tuple[Topic, ...]
    """The topics that it hands rows over to."""

    reads: tuple[str, ...] = ()
    """The topics that it reads."""


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A snapshot, compiled."""

    number: int
    tasks: Mapping[Signature, CompiledTask]
    fragments: Mapping[str, Fragment]

    def hosts(self) -> dict[str, list[dict[str, Any]]]:
        """What the workers of keyed hosts need of this plan: the hosted tasks, in the order of their results."""
        hosts = [fragment for fragment in self.fragments.values() if fragment.kind is Kind.KEYED]
        return {fragment.id: [_hosted(self.tasks[task]) for task in fragment.roots] for fragment in hosts}

    def since(self) -> dict[Signature, int]:
        """Since which snapshot each keyed task has run without a break."""
        return {task.signature: task.since for task in self.tasks.values() if task.state is State.KEYED}


def _hosted(task: CompiledTask) -> dict[str, Any]:
    return {
        "task": task.signature,
        "type": task.alternate.type,
        "config": task.alternate.config.as_dict(),
        "life": f"{task.signature}@{task.since}",
        "alternate": _digest(alternate_key(task.alternate)),
    }


def compile_plan(snapshot: Snapshot, registry: Registry) -> CompiledPlan:
    """Compile a snapshot; raises :class:`InputError` for what cannot be run."""
    tasks = _running_tasks(snapshot, registry)
    readers = _readers(tasks)
    units = snapshot.units
    fragments = [*_roots(tasks, units), *_proxies(tasks, units)]
    below = {root.id: _reach(root, tasks, readers, units) for root in fragments}
    placed: dict[Signature, list[str]] = {}
    for root in fragments:
        for signature in (*below[root.id], *(root.roots if root.kind not in FED else ())):
            placed.setdefault(signature, []).append(root.id)
    writes: dict[str, list[Topic]] = {root.id: [] for root in fragments}
    reads: dict[str, list[str]] = {root.id: [] for root in fragments}
    for reader in fragments:
        by_writer: dict[str, dict[int, list[Feed]]] = {}
        for feed in reader.feeds:
            for writer in placed.get(feed.source, ()):
                by_writer.setdefault(writer, {}).setdefault(feed.side or 0, []).append(feed)
        for writer, sides in by_writer.items():
            for side, feeds in sides.items():
                # Both sides of a join may come from one fragment; their rows have columns of their own.
                name = f"{reader.id} {writer}" if len(sides) == 1 else f"{reader.id} {writer} {side}"
                topic = Topic(_digest(name), reader.id, tuple(feeds))
                writes[writer].append(topic)
                reads[reader.id].append(topic.id)
    built = {
        root.id: Fragment(
            root.id,
            root.kind,
            root.roots,
            tuple(below[root.id]),
            root.feeds,
            root.key,
            tuple(sorted(writes[root.id], key=lambda topic: topic.id)),
            tuple(sorted(reads[root.id])),
        )
        for root in fragments
    }
    plan = CompiledPlan(snapshot.number, tasks, built)
    _check_ports(plan)
    return plan


@dataclass(frozen=True, slots=True)
class _Part:
    """A task of one dataflow, with what compiling it does not depend on the snapshot for."""

    signature: Signature
    name: str
    task: Task
    best: Alternate
    feeds: tuple[Feed, ...]


def _parts(dataflow: Dataflow) -> tuple[_Part, ...]:
    """The tasks of a dataflow, each after those that feed it."""
    alone = deduplicate(dataflow)
    graph, signatures = Graph(alone.dataflow), alone.signatures
    parts = []
    for task_id in graph.order():
        task = graph.tasks[task_id]
        feeds = tuple(_feed(stream, signatures[stream.source]) for stream in graph.feeds[task_id])
        best = max(task.alternates, key=lambda alternate: alternate.value)
        parts.append(_Part(signatures[task_id], f"{dataflow.name}.{task_id}", task, best, feeds))
    return tuple(parts)


# Of many dataflows, all but a few are the same from one snapshot to the next.
_parts_of = remembered(_parts)


@lru_cache(maxsize=100_000)
def _options(kind: TaskType, config: Config) -> TaskConfig:
    return kind.config.model_validate(config.as_dict())


def _running_tasks(snapshot: Snapshot, registry: Registry) -> dict[Signature, CompiledTask]:
    """Every task once, called after the first dataflow that has it; each after those that feed it."""
    first: dict[Signature, _Part] = {}
    users: dict[Signature, list[DataflowName]] = {}
    for dataflow in snapshot.running:
        for part in _parts_of(dataflow):
            first.setdefault(part.signature, part)
            users.setdefault(part.signature, []).append(dataflow.name)
    return {signature: _running(part, users[signature], snapshot, registry) for signature, part in first.items()}


def _running(part: _Part, users: Sequence[DataflowName], snapshot: Snapshot, registry: Registry) -> CompiledTask:
    alternate, wanted = part.best, snapshot.active.get(part.signature)
    if wanted is not None:
        alternate = next((way for way in part.task.alternates if alternate_key(way) == wanted), part.best)
    kind = registry[alternate.type]
    if kind.name == "opaque":
        told = f"task '{part.name}' is opaque: it stands for work and does none; give it a type"
        raise InputError("CANNOT_RUN", told)
    return CompiledTask(
        part.signature,
        part.name,
        alternate,
        _options(kind, alternate.config),
        part.task.ports or kind.ports,
        kind.state,
        kind.role,
        part.feeds,
        tuple(users),
        snapshot.partitions.get(part.signature),
        part.task.on_error,
        part.task.time_budget_s,
        snapshot.since.get(part.signature, snapshot.number),
    )


def _feed(stream: Stream, source: Signature) -> Feed:
    where = stream.routing.where if isinstance(stream.routing, ByPredicate) else None
    return Feed(source, stream.source_port, stream.target_port, where, stream.side, stream.feedback)


Readers = Mapping[Signature, list[tuple[Feed, CompiledTask]]]


def _readers(tasks: Mapping[Signature, CompiledTask]) -> Readers:
    found: dict[Signature, list[tuple[Feed, CompiledTask]]] = {signature: [] for signature in tasks}
    for task in tasks.values():
        for feed in task.feeds:
            found[feed.source].append((feed, task))
    return found


@dataclass(frozen=True, slots=True)
class _Root:
    id: str
    kind: Kind
    unit: int
    roots: tuple[Signature, ...]
    feeds: tuple[Feed, ...] = ()
    key: tuple[str, ...] = ()


UnitOf = Mapping[Signature, int]


def _roots(tasks: Mapping[Signature, CompiledTask], units: UnitOf) -> list[_Root]:
    roots: list[_Root] = []
    hosts: dict[tuple[str, int], list[CompiledTask]] = {}
    for task in tasks.values():
        unit = units.get(task.signature, 0)
        if task.role is Role.SOURCE:
            roots.append(_Root(f"source-{task.signature[:16]}", Kind.SOURCE, unit, (task.signature,)))
        elif task.state is State.NATIVE:
            roots.append(_Root(f"native-{task.signature[:16]}", Kind.NATIVE, unit, (task.signature,), task.feeds))
        elif task.state is State.KEYED:
            hosts.setdefault((_host_identity(task), unit), []).append(task)
        else:
            for feed in task.feeds:
                if feed.feedback:
                    name = _digest(f"{task.signature} {feed.identity}")
                    roots.append(_Root(f"feedback-{name}", Kind.FEEDBACK, unit, (task.signature,), (feed,)))
    for (identity, unit), hosted in hosts.items():
        ordered = sorted(hosted, key=lambda task: task.signature)
        members = tuple(task.signature for task in ordered)
        name = _digest(f"{identity} {unit}" if unit else identity)
        roots.append(_Root(f"keyed-{name}", Kind.KEYED, unit, members, ordered[0].feeds, _key(ordered[0])))
    return roots


def _proxies(tasks: Mapping[Signature, CompiledTask], units: UnitOf) -> list[_Root]:
    """What stateless tasks read of tasks in other units: one proxy for each such task and reading unit."""
    if not units:
        return []
    found: dict[tuple[Signature, int], None] = {}
    for task in tasks.values():
        unit = units.get(task.signature, 0)
        for feed in task.feeds:
            if task.state is State.NONE and not feed.feedback and units.get(feed.source, 0) != unit:
                found[feed.source, unit] = None
    return [
        _Root(f"proxy-{_digest(f'{source} {unit}')}", Kind.PROXY, unit, (source,), (_whole(tasks[source]),))
        for source, unit in found
    ]


def _whole(task: CompiledTask) -> Feed:
    """All that a task puts out; it is the same at each of its ports."""
    return Feed(task.signature, task.ports.outputs[0].name, "in", None, None, False)


def _key(task: CompiledTask) -> tuple[str, ...]:
    assert isinstance(task.options, KeyedConfig)
    return task.options.key


def _host_identity(task: CompiledTask) -> str:
    return canonical_text([sorted(feed.identity for feed in task.feeds), [name.casefold() for name in _key(task)]])


def _reach(root: _Root, tasks: Mapping[Signature, CompiledTask], readers: Readers, units: UnitOf) -> list[Signature]:
    """The stateless tasks below a root and in its unit, in the order of the merged graph."""
    reached: set[Signature] = set()
    waiting = list(root.roots)
    if root.kind is Kind.FEEDBACK:
        reached.add(root.roots[0])
    while waiting:
        for feed, reader in readers[waiting.pop()]:
            here = units.get(reader.signature, 0) == root.unit
            if here and not feed.feedback and reader.state is State.NONE and reader.signature not in reached:
                reached.add(reader.signature)
                waiting.append(reader.signature)
    return [signature for signature in tasks if signature in reached]


def _check_ports(plan: CompiledPlan) -> None:
    """A stateless task with several input ports sees all of them in one micro-batch, so one root must feed them all."""
    for task in plan.tasks.values():
        if task.state is State.NONE and len(task.ports.inputs) > 1:
            homes = [f for f in plan.fragments.values() if task.signature in f.tasks]
            if len(homes) > 1:
                raise InputError(
                    "CANNOT_RUN",
                    f"task '{task.name}' joins streams of {len(homes)} fragments within a micro-batch; "
                    "use a task of type join for streams that come apart in time",
                )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
