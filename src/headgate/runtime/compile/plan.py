"""A compiled plan: which Spark streaming queries run, and what each does in an epoch.

The merged graph of all dataflows is cut before stateful tasks and at feedback streams. What is left hangs together
below *roots*, one fragment each:

- a **source** task: a live fragment that reads it;
- a **keyed host**: every keyed task with the same input streams and key columns, in one stateful query;
- a **chained** host: every window and join over the same streams, with state in chains of files;
- a **feedback** stream: a live fragment that reads it back from the exchange;
- a **proxy**: where a strategy separates groups of tasks, what a group reads of a task of another one.

A fragment runs the stateless tasks that its root's rows reach. A task that rows of several roots reach is run in each
of those fragments, for their own rows: it treats each row by itself, so nothing is computed twice. Streams into a
stateful task or back into the graph are handed over through *topics* of the exchange, one per fragment, reader and side
of the reader; each window and join has topics of its own, with the columns that it needs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from immutables import Map

from headgate.model.config import canonical_text
from headgate.model.identity import remembered
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.model.on_error import OnError
from headgate.model.task import Alternate, Ports
from headgate.model.task_type import Role, State, TaskConfig, TaskType
from headgate.model.work import Work
from headgate.sharing.change import RunningTask
from headgate.sharing.versioned import VersionedMap

__all__ = [
    "FED",
    "ChainedSide",
    "CompiledPlan",
    "CompiledTask",
    "Feed",
    "Fragment",
    "Kind",
    "Topic",
    "alternate_key",
    "digest",
    "is_later",
    "later",
    "life_of",
]


class Kind(StrEnum):
    """What a fragment's rows come from."""

    SOURCE = "source"
    KEYED = "keyed"
    CHAINED = "chained"
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

    running: RunningTask
    used_by: Map[DataflowName, TaskId]
    """The dataflows for which it runs, and what each calls it."""

    alternate: Alternate
    kind: TaskType
    """The type of the active alternate."""

    options: TaskConfig
    feeds: tuple[Feed, ...]
    partitions: int | None
    since: int
    """The snapshot since which it has run without a break."""

    copies: Mapping[Signature, Signature] = field(default_factory=dict)
    """While a past is computed: the copies whose rows it gets before those of the tasks that they are copies of."""

    places: tuple[str, ...] = ()
    """Of a source whose partitions are placed: the machine of each."""

    @property
    def signature(self) -> Signature:
        return self.running.signature

    @property
    def life(self) -> str:
        return life_of(self.signature, self.since)

    @property
    def name(self) -> str:
        """``dataflow.task``, after the dataflow with which it came or, without that one, the first by name."""
        first = self.running.brought_by
        first = first if first in self.used_by else min(self.used_by)
        return f"{first}.{self.used_by[first]}"

    @property
    def users(self) -> tuple[DataflowName, ...]:
        return tuple(sorted(self.used_by))

    @property
    def ports(self) -> Ports:
        return self.running.task.ports or self.kind.ports

    @property
    def work(self) -> Work:
        assert self.kind.work is not None  # the compiler refuses what cannot run
        return self.kind.work

    @property
    def state(self) -> State:
        return self.kind.state

    @property
    def role(self) -> Role:
        return self.kind.role

    @property
    def on_error(self) -> OnError:
        return self.running.task.on_error

    @property
    def time_budget_s(self) -> float | None:
        return self.running.task.time_budget_s

    @property
    def job_part(self) -> tuple[object, ...]:
        """What its part of a Spark job depends on: not for which dataflows it runs."""
        does = self.alternate.type, self.alternate.config, self.partitions, self.places
        return self.signature, self.feeds, self.ports, *does, self.on_error, self.time_budget_s


def alternate_key(alternate: Alternate) -> str:
    """What an alternate does, as a text: the same in every dataflow that has it, whatever it is called there."""
    return f"{alternate.type} {alternate.config.text}"


def life_of(task: Signature, since: int) -> str:
    """A task with state, since it has run without a break: one that comes back has other state."""
    return f"{task}@{since}"


class ChainedSide(NamedTuple):
    """A side of a window or a join."""

    task: Signature
    since: int
    side: int

    @property
    def life(self) -> str:
        return life_of(self.task, self.since)


@dataclass(frozen=True, slots=True)
class Topic:
    """A derived stream in the exchange: what one fragment hands over to another."""

    id: str
    reader: str
    feeds: tuple[Feed, ...]
    chained: ChainedSide | None = None
    """The window or join for which its rows are made."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """What one Spark streaming query does."""

    id: str
    kind: Kind
    roots: tuple[Signature, ...]
    """The source, or the tasks of a host; keyed ones in the order of their results.

    Of a feedback fragment the task that the rows come back to, of a proxy the task that it stands for."""

    tasks: tuple[Signature, ...] = ()
    """The stateless tasks it runs, each after those that feed it."""

    feeds: tuple[Feed, ...] = ()
    """The streams that a host, feedback fragment or proxy reads."""

    key: tuple[str, ...] = ()
    writes: tuple[Topic, ...] = ()
    """The topics that it hands rows over to."""

    reads: tuple[str, ...] = ()
    """The topics that it reads."""

    reads_for: tuple[ChainedSide, ...] = ()
    """For each topic that a chained host reads, whose rows it has."""


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A snapshot, compiled."""

    number: int = 0
    tasks: VersionedMap[Signature, CompiledTask] = field(default_factory=VersionedMap)
    fragments: VersionedMap[str, Fragment] = field(default_factory=VersionedMap)
    homes: VersionedMap[Signature, tuple[str, ...]] = field(default_factory=VersionedMap)
    """The fragments that run each task."""

    hosts: VersionedMap[str, None] = field(default_factory=VersionedMap)
    """The fragments that are keyed hosts."""

    def fragments_of(self, tasks: Iterable[Signature]) -> tuple[str, ...]:
        """The fragments that run any of some tasks; those that are not in the plan have none."""
        return tuple(dict.fromkeys(home for task in tasks for home in self.homes.get(task, ())))

    def readers_of(self, topic: Topic) -> tuple[Signature, ...]:
        """The tasks that rows of a topic are for; none if its reader is gone."""
        reader = self.fragments.get(topic.reader)
        if reader is None or topic.chained is None:
            return () if reader is None else reader.roots
        return (topic.chained.task,) if topic.chained.task in reader.roots else ()

    def job_parts(self, fragment: str) -> tuple[object, ...]:
        """What the jobs of a fragment depend on: plans that agree in it run the same jobs."""
        here = self.fragments[fragment]
        fed = [topic.chained.task for topic in here.writes if topic.chained is not None]
        return here, *(self.tasks[task].job_part for task in (*here.roots, *here.tasks, *fed) if task in self.tasks)

    def places_of(self, fragment: str) -> tuple[str, ...]:
        """The machine of each partition of a fragment, if they are placed."""
        here = self.fragments.get(fragment)
        root = None if here is None else self.tasks.get(here.roots[0])
        return () if root is None else root.places

    def hosts_text(self) -> str:
        """What the workers of keyed hosts need of this plan, as JSON: the hosted tasks, in the order of results."""
        hosts = [self.fragments[name] for name in self.hosts]
        texts = [f'"{host.id}": [{", ".join(_hosted_text(self.tasks[task]) for task in host.roots)}]' for host in hosts]
        return f"{{{', '.join(texts)}}}"


def _hosted(task: CompiledTask) -> str:
    return json.dumps(
        {
            "task": task.signature,
            "type": task.alternate.type,
            "config": task.alternate.config.as_dict(),
            "life": task.life,
            "alternate": digest(alternate_key(task.alternate)),
        }
    )


# All but a few tasks are the same from one plan to the next.
_hosted_text = remembered(_hosted)


_LATER = "-later"


def later(topic: str) -> str:
    """The topic where rows wait until those of a past are in ``topic``."""
    return f"{topic}{_LATER}"


def is_later(topic: str) -> bool:
    """Whether it is a topic where rows wait; nobody reads it."""
    return topic.endswith(_LATER)


def digest(text: str) -> str:
    """Sixteen hexadecimal digits that stand for a text."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
