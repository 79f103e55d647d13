"""Compiling a snapshot by difference: what a change does not touch is taken over from the plan before it. Pure.

A task never outlives those that it reads, and its signature includes them. So the fragments that run a task stay the
same for as long as it runs: adding and removing tasks changes the fragments of those tasks and nothing else. To compile
a whole snapshot is to add all of its tasks to an empty plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import cast

from immutables import Map

from headgate.errors import InputError
from headgate.model.config import Config, canonical_text
from headgate.model.names import Signature
from headgate.model.sql.bounds import bounded
from headgate.model.stream import ByPredicate
from headgate.model.task import Alternate
from headgate.model.task_type import Role, State, TaskConfig, TaskType
from headgate.runtime.compile.plan import (
    ChainedSide,
    CompiledPlan,
    CompiledTask,
    Feed,
    Fragment,
    Kind,
    Topic,
    alternate_key,
    digest,
    is_later,
    later,
)
from headgate.runtime.engine.snapshot import Snapshot
from headgate.sharing.change import RunningStream
from headgate.sharing.past import dataflow_of, handed_in
from headgate.sharing.running import UsedTask
from headgate.sharing.versioned import VersionedMap
from headgate.tasks.keyed_base import KeyedConfig

__all__ = ["compile_plan"]


def compile_plan(
    snapshot: Snapshot, before: CompiledPlan | None = None, touched: Iterable[Signature] = ()
) -> CompiledPlan:
    """Compile a snapshot; raises :class:`InputError` for what cannot be run.

    With the plan ``before`` it, only the tasks that the change has touched are compiled; they are given each after
    those that feed it.
    """
    if before is None:
        return _Compiler(CompiledPlan(), snapshot).run(snapshot.signatures)
    try:
        return _Compiler(before, snapshot).run(touched)
    except _Reshaped:
        return compile_plan(snapshot)


HOSTED = (State.KEYED, State.CHAINED)
"""What the tasks of hosts keep."""


class _Reshaped(Exception):
    """A task is of another kind now, so the graph is cut elsewhere."""


class _Compiler:
    """The difference between two plans, while it is worked out."""

    def __init__(self, before: CompiledPlan, snapshot: Snapshot) -> None:
        self.before = before
        self.snapshot = snapshot
        self.unit_of: Mapping[Signature, int] = snapshot.unit_of
        self.tasks: dict[Signature, CompiledTask] = {}
        self.homes: dict[Signature, tuple[str, ...]] = {}
        self.fragments: dict[str, Fragment | None] = {}
        """Fragments that are new or changed; ``None`` for those that end."""

        self.added: dict[str, list[Signature]] = {}
        self.removed: dict[str, set[Signature]] = {}
        """Stateless tasks that come to and go from each fragment."""

        self.hosted: dict[str, dict[Signature, CompiledTask | None]] = {}
        """Keyed tasks that come to and go from each host."""

        self.readers: dict[str, None] = {}
        """Fragments whose topics are to be worked out."""

    def run(self, touched: Iterable[Signature]) -> CompiledPlan:
        gone: list[CompiledTask] = []
        for signature in touched:
            known = self.before.tasks.get(signature)
            task = self._compiled(signature, known)
            if task is None:
                gone += [known] if known is not None else []
            elif known is None:
                self.tasks[signature] = task
                self._add(task)
            elif known.alternate != task.alternate and _shape(known) != _shape(task):
                raise _Reshaped
            else:
                self.tasks[signature] = task
                if known.copies != task.copies:
                    self.readers |= dict.fromkeys(self._home(signature))
        for task in gone:
            self._remove(task)
        self._change_hosts()
        self._change_tasks()
        self._change_topics()
        return self._plan([task.signature for task in gone])

    def _plan(self, gone: list[Signature]) -> CompiledPlan:
        before, alive = self.before, {name: one for name, one in self.fragments.items() if one is not None}
        ended = [name for name, one in self.fragments.items() if one is None and name in before.fragments]
        hosts: VersionedMap[str, None] = before.hosts
        keyed = [name for name in self.hosted if name in alive and alive[name].kind is Kind.KEYED]
        new_hosts = [name for name in keyed if name not in hosts]
        old_hosts = [name for name in ended if name in hosts]
        if new_hosts or old_hosts:
            hosts = hosts.updated(dict.fromkeys(new_hosts), without=old_hosts)
        return CompiledPlan(
            self.snapshot.number,
            before.tasks.updated(self.tasks, without=gone),
            before.fragments.updated(alive, without=ended),
            before.homes.updated(self.homes, without=gone),
            hosts,
        )

    # tasks

    def _compiled(self, signature: Signature, known: CompiledTask | None) -> CompiledTask | None:
        """The task as the snapshot wants it; ``None`` where no dataflow needs it, or only paused ones do."""
        snapshot = self.snapshot
        used = snapshot.shared.running.tasks.get(signature)
        users = used.users if used is not None else None
        for name in snapshot.paused if users else ():
            users = users.delete(name) if users is not None and name in users else users
        if used is None or not users:
            return None
        if snapshot.catch_ups:
            users = Map((dataflow_of(name), task) for name, task in users.items())
        alternate = _active(used, snapshot.active.get(signature))
        kind = snapshot.shared.registry[alternate.type]
        if kind.work is None:
            task = f"{used.running.brought_by}.{used.running.task.id}"
            message = f"task '{task}' has type {kind.name}, which only the simulator can run; give it a runnable type"
            raise InputError("CANNOT_RUN", message)
        return CompiledTask(
            used.running,
            users,
            alternate,
            kind,
            _options(kind, alternate.config),
            known.feeds if known is not None else tuple(_feed(stream) for stream in used.running.feeds),
            snapshot.partitions.get(signature),
            known.since if known is not None else snapshot.since.get(signature, snapshot.number),
            snapshot.copies_before(signature) if snapshot.catch_ups else {},
            snapshot.places.get(signature, ()),
        )

    def _task(self, signature: Signature) -> CompiledTask:
        return self.tasks.get(signature) or self.before.tasks[signature]

    def _home(self, signature: Signature) -> tuple[str, ...]:
        return self.homes.get(signature) or self.before.homes[signature]

    def _fragment(self, name: str) -> Fragment | None:
        return self.fragments[name] if name in self.fragments else self.before.fragments.get(name)

    # adding

    def _add(self, task: CompiledTask) -> None:
        signature = task.signature
        if task.role is Role.SOURCE:
            self._begin(Fragment(f"source-{signature[:16]}", Kind.SOURCE, (signature,)), signature)
        elif task.state in HOSTED:
            host = self._host(task)
            self.hosted.setdefault(host, {})[signature] = task
            self.homes[signature] = (host,)
        else:
            self._add_stateless(task)

    def _begin(self, fragment: Fragment, task: Signature | None = None) -> None:
        self.fragments[fragment.id] = fragment
        if fragment.feeds:
            self.readers[fragment.id] = None
        if task is not None:
            self.homes[task] = (fragment.id,)

    def _host(self, task: CompiledTask) -> str:
        """The host of a task: one for all of a unit that read the same streams, keyed ones by the same key."""
        if task.state is State.KEYED:
            feeds = sorted(feed.identity for feed in task.feeds)
            of = [feeds, [name.casefold() for name in _key(task)]]
        else:
            of = [sorted({f"{feed.source} {feed.source_port}" for feed in task.feeds})]
        identity = canonical_text([*of, *handed_in(task.running.task.scope)])
        unit = self.unit_of.get(task.signature, 0)
        return f"{task.state.value}-{digest(f'{identity} {unit}' if unit else identity)}"

    def _add_stateless(self, task: CompiledTask) -> None:
        unit = self.unit_of.get(task.signature, 0)
        homes: dict[str, None] = {}
        for feed in task.feeds:
            if feed.feedback:
                name = f"feedback-{digest(f'{task.signature} {feed.identity}')}"
                self._begin(Fragment(name, Kind.FEEDBACK, (task.signature,), feeds=(feed,)))
                homes[name] = None
            elif self.unit_of.get(feed.source, 0) == unit:
                homes |= dict.fromkeys(self._home(feed.source))
            else:
                homes[self._proxy(feed.source, unit)] = None
        if len(homes) > 1 and len(task.ports.inputs) > 1:
            # It sees all its ports in one micro-batch, so one root must feed them all.
            message = f"task '{task.name}' joins streams of {len(homes)} fragments within a micro-batch; "
            raise InputError("CANNOT_RUN", f"{message}use a task of type join for streams that differ in time")
        self.homes[task.signature] = tuple(homes)
        for home in homes:
            self.added.setdefault(home, []).append(task.signature)

    def _proxy(self, source: Signature, unit: int) -> str:
        """What a unit reads of a task in another one: one proxy for all of its readers there."""
        name = f"proxy-{digest(f'{source} {unit}')}"
        if self._fragment(name) is None:
            # All that the task puts out: it is the same at each of its ports.
            whole = Feed(source, self._task(source).ports.outputs[0].name, "in", None, None, False)
            self._begin(Fragment(name, Kind.PROXY, (source,), feeds=(whole,)))
        return name

    # removing

    def _remove(self, task: CompiledTask) -> None:
        signature = task.signature
        for home in self.before.homes[signature]:
            if task.state in HOSTED:
                self.hosted.setdefault(home, {})[signature] = None
            elif task.role is Role.SOURCE:
                self._end(home)
            else:
                self.removed.setdefault(home, set()).add(signature)
                fragment = self._fragment(home)
                if fragment is not None and fragment.kind is Kind.FEEDBACK and fragment.roots == (signature,):
                    self._end(home)

    def _end(self, name: str) -> None:
        self.fragments[name] = None
        self.readers[name] = None

    # what follows for fragments

    def _change_hosts(self) -> None:
        for name, changes in self.hosted.items():
            known = self._fragment(name)
            members = {root: self._task(root) for root in (known.roots if known is not None else ())}
            for signature, task in changes.items():
                members.pop(signature, None)
                if task is not None:
                    members[signature] = task
            if not members:
                self._end(name)
                continue
            roots = tuple(sorted(members))
            first = members[roots[0]]
            host = known or Fragment(name, Kind(first.state.value), roots)
            if first.state is State.KEYED:
                feeds, key = first.feeds, _key(first)
            else:
                feeds, key = tuple(dict.fromkeys(feed for root in roots for feed in members[root].feeds)), ()
            if host.feeds != feeds or (first.state is State.CHAINED and host.roots != roots):
                self.readers[name] = None
            self.fragments[name] = replace(host, roots=roots, feeds=feeds, key=key)

    def _change_tasks(self) -> None:
        for name in {**self.removed, **self.added}:
            fragment = self._fragment(name)
            if fragment is None:
                continue
            gone, tasks = self.removed.get(name), fragment.tasks
            if gone:
                tasks = tuple(task for task in tasks if task not in gone)
            tasks = (*tasks, *self.added.get(name, ()))
            if fragment.kind is Kind.PROXY and not tasks:
                self._end(name)
            else:
                self.fragments[name] = replace(fragment, tasks=tasks)

    def _change_topics(self) -> None:
        closed: dict[str, set[str]] = {}
        opened: dict[str, list[Topic]] = {}
        for name in self.readers:
            known = self.before.fragments.get(name)
            for source in self._read_before(known) if known is not None else ():
                for writer in self.before.homes[source]:
                    closed.setdefault(writer, set()).add(name)
            reader = self._fragment(name)
            if reader is not None:
                topics = self._topics(reader)
                read = {topic.id: topic.chained for _, topic in topics if not is_later(topic.id)}
                reads, whose = tuple(sorted(read)), tuple(read[topic] for topic in sorted(read))
                self.fragments[name] = replace(reader, reads=reads, reads_for=tuple(filter(None, whose)))
                for writer, topic in topics:
                    opened.setdefault(writer, []).append(topic)
        for writer in {**closed, **opened}:
            fragment = self._fragment(writer)
            if fragment is not None:
                gone = closed.get(writer, ())
                writes = [topic for topic in fragment.writes if topic.reader not in gone] + opened.get(writer, [])
                self.fragments[writer] = replace(fragment, writes=tuple(sorted(writes, key=attrgetter("id"))))

    def _topics(self, reader: Fragment) -> list[tuple[str, Topic]]:
        """The topics that a fragment reads, each with the fragment that writes it."""
        if reader.kind is Kind.CHAINED:
            return [pair for root in reader.roots for pair in self._chained_topics(reader, self._task(root))]
        by_writer: dict[str, list[Feed]] = {}
        for feed in reader.feeds:
            for writer in self._home(feed.source):
                by_writer.setdefault(writer, []).append(feed)
        copies = self._task(reader.roots[0]).copies
        topics: list[tuple[str, Topic]] = []
        for writer, feeds in by_writer.items():
            topics += self._after_past(writer, Topic(digest(f"{reader.id} {writer}"), reader.id, tuple(feeds)), copies)
        return topics

    def _after_past(
        self, writer: str, topic: Topic, copies: Mapping[Signature, Signature]
    ) -> Iterator[tuple[str, Topic]]:
        """A topic with its writer; while a past is computed that has the topic first, what it writes waits."""
        past = self._past_of(writer, copies)
        if past is None:
            yield writer, topic
        else:
            passed = tuple(replace(feed, source=copies[feed.source]) for feed in topic.feeds)
            yield past, replace(topic, feeds=passed)
            yield writer, replace(topic, id=later(topic.id))

    def _read_before(self, fragment: Fragment) -> list[Signature]:
        """The tasks whose rows a fragment gets in the plan before, copies that come first among them."""
        sources = [feed.source for feed in fragment.feeds]
        roots = [root for root in map(self.before.tasks.get, fragment.roots) if root is not None]
        return [*sources, *(root.copies[source] for root in roots for source in sources if source in root.copies)]

    def _past_of(self, writer: str, copies: Mapping[Signature, Signature]) -> str | None:
        """The fragment that computes the past of a source's fragment, if that comes first."""
        fragment = self._fragment(writer)
        copy = copies.get(fragment.roots[0]) if fragment is not None and fragment.kind is Kind.SOURCE else None
        return self._home(copy)[0] if copy is not None else None

    def _chained_topics(self, reader: Fragment, task: CompiledTask) -> Iterator[tuple[str, Topic]]:
        """The topics of a window or a join: one for each side and each fragment that has rows for it."""
        feeds: dict[tuple[str, int], list[Feed]] = {}
        for feed in task.feeds:
            for writer in self._home(feed.source):
                feeds.setdefault((writer, feed.side or 0), []).append(feed)
        for (writer, side), some in feeds.items():
            # A task that comes back has other topics: in the former ones there may be rows of its former life.
            name = digest(f"{reader.id} {writer} {task.life} {side}")
            topic = Topic(name, reader.id, tuple(some), ChainedSide(task.signature, task.since, side))
            yield from self._after_past(writer, topic, task.copies)


def _shape(task: CompiledTask) -> tuple[object, ...]:
    """What decides where the graph is cut."""
    return task.role, task.state, _key(task) if task.state is State.KEYED else (), task.ports


def _active(used: UsedTask, wanted: str | None) -> Alternate:
    alternates = used.running.task.alternates
    if wanted is not None:
        for alternate in alternates:
            if alternate_key(alternate) == wanted:
                return alternate
    return max(alternates, key=lambda alternate: alternate.value)


@lru_cache(maxsize=100_000)
def _options(kind: TaskType, config: Config) -> TaskConfig:
    return kind.config.model_validate(config.as_dict())


def _feed(stream: RunningStream) -> Feed:
    where = bounded(stream.routing.where) if isinstance(stream.routing, ByPredicate) else None
    return Feed(stream.source, stream.source_port, stream.target_port, where, stream.side, stream.feedback)


def _key(task: CompiledTask) -> tuple[str, ...]:
    return cast(KeyedConfig, task.options).key
