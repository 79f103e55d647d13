"""The set algebra of SHARE, written out as the paper has it and as slowly: an oracle for the running set.

Tasks are plain numbers with a label, streams are triples; equivalence compares ancestor graphs written out in full.
Nothing of :mod:`headgate.sharing` is used.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import count

import networkx as nx

from headgate.model.dataflow import Dataflow

Node = Hashable
Edge = tuple[Node, Node, str]


@dataclass
class Dag:
    """Tasks with their labels, and streams."""

    labels: dict[Node, Hashable] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def parents(self, task: Node) -> list[Edge]:
        return [edge for edge in self.edges if edge[1] == task]

    def sources(self) -> set[Node]:
        return set(self.labels) - {target for _, target, _ in self.edges}

    def sinks(self) -> set[Node]:
        return set(self.labels) - {source for source, _, _ in self.edges}

    def ancestors(self, task: Node) -> set[Node]:
        found = {task}
        for source, _, _ in self.parents(task):
            found |= self.ancestors(source)
        return found

    def written_out(self) -> dict[Node, str]:
        """Each task's ancestor graph as a text: equal for equivalent tasks of graphs without duplicates."""
        texts: dict[Node, str] = {}
        entering: dict[Node, list[Edge]] = {task: [] for task in self.labels}
        for edge in self.edges:
            entering[edge[1]].append(edge)

        def text(task: Node) -> str:
            if task not in texts:
                feeds = sorted(f"{label}<{text(source)}>" for source, _, label in entering[task])
                texts[task] = f"{self.labels[task]}({','.join(feeds)})"
            return texts[task]

        for task in self.labels:
            text(task)
        return texts


def dag_of(dataflow: Dataflow) -> Dag:
    """A dataflow without its duplicates, as plain sets."""
    dag = Dag()
    for task in dataflow.tasks:
        dag.labels[task.id] = repr(sorted((way.type, way.config.text) for way in task.alternates)) + repr(
            _circle(dataflow, task.share)
        )
    for stream in dataflow.streams:
        label = repr((stream.source_port, stream.target_port, stream.routing, stream.side))
        dag.edges.append((stream.source, stream.target, label))
    texts = dag.written_out()
    first: dict[str, Node] = {}
    for task in dataflow.tasks:
        first.setdefault(texts[task.id], task.id)
    stands = {task: first[text] for task, text in texts.items()}
    kept = set(stands.values())
    return Dag(
        {task: label for task, label in dag.labels.items() if task in kept},
        [(stands[source], target, label) for source, target, label in dag.edges if target in kept],
    )


def _circle(dataflow: Dataflow, share: object) -> Hashable:
    effective = share or dataflow.share
    return {"anyone": None, "owner": ("owner", dataflow.owner), "never": ("dataflow", dataflow.name)}[str(effective)]


class NaiveSet:
    """The submitted DAGs and the running ones, changed by Algorithms 1 and 2."""

    def __init__(self) -> None:
        self.submitted: dict[str, Dag] = {}
        self.running: list[Dag] = []
        self._ids = count()

    def merge(self, dataflow: Dataflow) -> tuple[int, int]:
        """Algorithm 1; returns how many tasks overlap and how many do not."""
        new = dag_of(dataflow)
        self.submitted[dataflow.name] = new
        texts = new.written_out()
        starts = {texts[task] for task in new.sources()}
        overlapping = [dag for dag in self.running if starts & {f"{dag.labels[t]}()" for t in dag.sources()}]
        merged = Dag()
        for dag in overlapping:
            merged.labels |= dag.labels
            merged.edges += dag.edges
        known = {text: task for task, text in merged.written_out().items()}
        stands: dict[Node, Node] = {task: known[text] for task, text in texts.items() if text in known}
        fresh = set(new.labels) - set(stands)
        stands |= {task: next(self._ids) for task in fresh}
        for task in fresh:
            merged.labels[stands[task]] = new.labels[task]
        for source, target, label in new.edges:
            if target in fresh:
                merged.edges.append((stands[source], stands[target], label))
        self.running = [dag for dag in self.running if not any(dag is other for other in overlapping)] + [merged]
        return len(new.labels) - len(fresh), len(fresh)

    def unmerge(self, name: str) -> tuple[int, int]:
        """Algorithm 2; returns how many tasks are left and how many go."""
        gone = self.submitted.pop(name)
        needed: set[str] = set()
        for dag in self.submitted.values():
            texts = dag.written_out()
            needed |= {texts[task] for task in self._needed(dag)}
        total, replaced = 0, []
        for dag in self.running:
            texts = dag.written_out()
            kept = {task for task, text in texts.items() if text in needed}
            total += len(dag.labels) - len(kept)
            pruned = Dag(
                {task: dag.labels[task] for task in kept},
                [edge for edge in dag.edges if edge[0] in kept and edge[1] in kept],
            )
            replaced += list(components(pruned))
        self.running = replaced
        return len(gone.labels) - total, total

    def _needed(self, dag: Dag) -> set[Node]:
        return {ancestor for sink in dag.sinks() for ancestor in dag.ancestors(sink)}

    def told(self) -> set[frozenset[str]]:
        """The running DAGs, each as the set of its tasks, written out."""
        whole = Dag()
        for dag in self.running:
            whole.labels |= dag.labels
            whole.edges += dag.edges
        return {frozenset(dag.written_out().values()) for dag in components(whole)}


def components(dag: Dag) -> Iterable[Dag]:
    graph = nx.Graph()
    graph.add_nodes_from(dag.labels)
    graph.add_edges_from((source, target) for source, target, _ in dag.edges)
    for nodes in nx.connected_components(graph):
        yield Dag({n: dag.labels[n] for n in nodes}, [edge for edge in dag.edges if edge[0] in nodes])
