"""Rewriting a submitted dataflow so that it reads wider streams which run already, and does the rest itself.

The outcome is an ordinary dataflow with equal sinks: it is merged, run and withdrawn like any other. Tasks are gone
through from the sources on. One whose equivalent runs stays as it is. For a relational one that has to run anew, the
running tasks over the same base are asked whether they contain it; the one that leaves least to do takes its place,
with the residual behind it, unless that would make more tasks than the author wrote. What nothing reads any more falls
away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.model.graph import Graph
from headgate.model.names import PortName, Signature, TaskId
from headgate.model.share import Share, scope_of
from headgate.model.stream import Stream
from headgate.model.task import Task
from headgate.sharing.change import RunningStream
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.running import RunningSet
from headgate.sharing.semantic.form import Known, understand
from headgate.sharing.semantic.index import FormIndex
from headgate.sharing.semantic.residual import Residual, residual
from headgate.sharing.signature import sign_task
from headgate.tasks.registry import Registry

__all__ = ["Rewritten", "WiderStream", "rewrite"]


@dataclass(frozen=True, slots=True)
class WiderStream:
    """A task whose rows come from a running task that makes more than was asked for, or the same in another way."""

    task: TaskId
    wider: Signature
    residual: tuple[TaskId, ...]
    """The tasks that do the rest; none when the two make equal rows."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A dataflow as it is merged, and the wider streams that it reads."""

    signed: SignedDataflow
    wider: tuple[WiderStream, ...]
    known: Mapping[Signature, Known]
    """What is known of its tasks, for the index."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A task of the rewritten dataflow."""

    signature: Signature
    task: Task
    streams: tuple[Stream, ...]
    """What enters it; the sources are named by their ids in the rewritten dataflow."""


class _Rewriting:
    def __init__(self, signed: SignedDataflow, running: RunningSet, index: FormIndex, registry: Registry) -> None:
        self.signed = signed
        self.dataflow = signed.dataflow
        self.running = running
        self.index = index
        self.registry = registry
        self.graph = Graph(self.dataflow)
        self.nodes: dict[TaskId, _Node] = {}
        self.ids: dict[Signature, TaskId] = {}
        self.stands: dict[TaskId, TaskId] = {}
        """The task of the rewritten dataflow whose rows stand for those of a written one."""

        self.known: dict[Signature, Known] = {}
        self.wider: dict[TaskId, WiderStream] = {}

    def run(self) -> Rewritten:
        for name in self.graph.order():
            self._place(name)
        needed = self._needed()
        known = {self.nodes[name].signature: self.known[self.nodes[name].signature] for name in needed}
        if not self.wider and len(needed) == len(self.dataflow.tasks):
            return Rewritten(self.signed, (), known)
        nodes = {name: node for name, node in self.nodes.items() if name in needed}
        tasks = tuple(node.task for node in nodes.values())
        streams = tuple(stream for node in nodes.values() for stream in node.streams)
        signatures = {name: node.signature for name, node in nodes.items()}
        wider = tuple(stream for name, stream in self.wider.items() if self.stands[name] in needed)
        dataflow = replace(self.dataflow, tasks=tasks, streams=streams)
        return Rewritten(SignedDataflow(dataflow, signatures), wider, known)

    def _place(self, name: TaskId) -> None:
        task = self.graph.tasks[name]
        feeds = self.graph.feeds[name]
        if all(self._is_as_written(stream.source) for stream in feeds):
            node = self._node(task, tuple(feeds), self.signed.signatures[name])
        else:
            node = self._node(task, tuple(replace(s, source=self.stands[s.source]) for s in feeds))
        if node.signature in self.ids:  # another task has become the same
            self.stands[name] = self.ids[node.signature]
            return
        if node.signature not in self.running.tasks:
            wider = self._widest(node)
            if wider is not None:
                self._put_behind(name, *wider)
                return
        self._keep(node)
        self.stands[name] = name

    def _is_as_written(self, name: TaskId) -> bool:
        return self.stands[name] == name and self.nodes[name].signature == self.signed.signatures[name]

    def _node(self, task: Task, streams: tuple[Stream, ...], signature: Signature | None = None) -> _Node:
        scope = self.dataflow.scope(task)
        feeds = [(stream, self.nodes[stream.source].signature) for stream in streams]
        signature = signature or sign_task(task, scope, feeds)
        if signature not in self.known:
            running = self.index.known.get(signature)
            self.known[signature] = running if running is not None else self._understood(task, feeds, signature)
        return _Node(signature, task, streams)

    def _understood(self, task: Task, feeds: Sequence[tuple[Stream, Signature]], signature: Signature) -> Known:
        streams = [_by_signature(stream, source, signature) for stream, source in feeds]
        return understand(task, self.dataflow.scope(task), streams, self.known, self.registry)

    def _keep(self, node: _Node) -> None:
        self.nodes[node.task.id] = node
        self.ids[node.signature] = node.task.id

    def _widest(self, node: _Node) -> tuple[Signature, Residual] | None:
        """The running task that leaves least to do for this one, and what it leaves.

        Of those that leave equally much, the one with the fewest conjuncts: the most would be a chain of filters each
        of which reads the one before it, as deep as there are dataflows.
        """
        wish = self.known[node.signature]
        best: tuple[tuple[int, int, int, str], Signature, Residual] | None = None
        for signature, wide in self.index.candidates(wish):
            left = residual(wide, wish)
            if left is not None and not left.works:
                return signature, left  # nothing can leave less
            if left is not None and len(left.works) <= self._written(node):
                met = len(wide.form.conjuncts) if wide.form else 0
                rank = (len(left.works), left.conjuncts, met, signature)
                if best is None or rank < best[0]:
                    best = (rank, signature, left)
        return None if best is None else (best[1], best[2])

    def _written(self, node: _Node) -> int:
        """How many tasks would have to run anew for this one: itself and those before it down to its base."""
        count, waiting = 1, node
        while len(waiting.streams) == 1:
            before = self.nodes[waiting.streams[0].source]
            if before.signature in self.running.tasks or self.known[before.signature].form is None:
                break
            count, waiting = count + 1, before
        return count

    def _put_behind(self, name: TaskId, wide: Signature, left: Residual) -> None:
        if wide not in self.ids:
            self._copy(wide, None if left.works else name)
        behind = self.ids[wide]
        share = self.graph.tasks[name].share
        added: list[TaskId] = []
        for task in left.tasks(name):
            stream = Stream(behind, PortName("out"), task.id, PortName("in"))
            node = self._node(replace(task, id=self._free(task.id, name), share=share), (stream,))
            node = replace(node, streams=(replace(stream, target=node.task.id),))
            if node.signature not in self.ids:
                self._keep(node)
            behind = self.ids[node.signature]
            added.append(behind)
        self.stands[name] = behind
        self.wider[name] = WiderStream(name, wide, tuple(added))

    def _copy(self, signature: Signature, name: TaskId | None) -> None:
        """Bring in a running task, and those before it down to one that is here already."""
        running = self.running.tasks[signature].running
        for stream in running.feeds:
            if stream.source not in self.ids:
                self._copy(stream.source, None)
        # It is confined to the same circle, so the dataflow's own words for that circle name it too.
        circle = running.task.scope
        is_own = circle in ("", scope_of(Share.OWNER, self.dataflow.owner, self.dataflow.name))
        share = Share.OWNER if circle else Share.ANYONE
        copied = replace(
            running.task,
            id=self._free(name or TaskId(f"{running.brought_by}.{running.task.id}"), name),
            scope="" if is_own else circle,
            share=share if is_own else None,
        )
        streams = tuple(
            Stream(self.ids[s.source], s.source_port, copied.id, s.target_port, s.routing, s.side, s.feedback)
            for s in running.feeds
        )
        self._keep(self._node(copied, streams))

    def _free(self, wanted: TaskId, instead_of: TaskId | None) -> TaskId:
        """An id that no other task has or will have; that of the task which is replaced is free."""
        taken = self.nodes.keys() | (self.graph.tasks.keys() - {instead_of})
        name, number = TaskId(wanted[:120]), 1
        while name in taken:
            number += 1
            name = TaskId(f"{wanted[:120]}_{number}")
        return name

    def _needed(self) -> set[TaskId]:
        waiting = [self.stands[sink] for sink in self.graph.sinks()]
        needed = set(waiting)
        while waiting:
            for stream in self.nodes[waiting.pop()].streams:
                if stream.source not in needed:
                    needed.add(stream.source)
                    waiting.append(stream.source)
        return needed


def rewrite(signed: SignedDataflow, running: RunningSet, index: FormIndex, registry: Registry) -> Rewritten:
    """Rewrite a dataflow; one with feedback streams is left as it is."""
    if any(stream.feedback for stream in signed.dataflow.streams):
        return Rewritten(signed, (), {})
    return _Rewriting(signed, running, index, registry).run()


def _by_signature(stream: Stream, source: Signature, target: Signature) -> RunningStream:
    return RunningStream(
        source, stream.source_port, target, stream.target_port, stream.routing, stream.side, stream.feedback
    )
