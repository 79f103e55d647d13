"""The graph of all that runs, laid out: a node for each task or, in large graphs, for the tasks with the same users.

A task that a dataflow uses is fed by tasks that it uses too. So tasks with the same users, or whose users belong to the
same teams, can be drawn as one node: from node to node the users only become fewer, and there is no cycle.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headgate.model.names import DataflowName, Signature
from headgate.model.task_type import Role
from headgate.report.layout import Layered, layered
from headgate.service.console.choices import SnapshotChoices
from headgate.service.console.selection import selected_tasks
from headgate.sharing.running import RunningSet, UsedTask
from headgate.tasks.registry import Registry

__all__ = [
    "MOST_NODES",
    "GraphEdge",
    "GraphLevel",
    "GraphNode",
    "GraphUser",
    "RunningGraph",
    "grouped",
    "running_graph",
]

MOST_NODES = 150
"""A graph with more tasks is collapsed, unless somebody asks for the tasks."""

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 176.0, 56.0, 64.0, 20.0, 16.0


class GraphLevel(StrEnum):
    """What a node stands for."""

    AUTO = "auto"
    """The first of the others that has few enough nodes."""

    TASKS = "tasks"
    DATAFLOWS = "dataflows"
    """All tasks that the same dataflows use."""

    TEAMS = "teams"
    """All tasks that the same teams use."""


@dataclass(frozen=True, slots=True)
class GraphUser:
    """A dataflow that uses a task, its owner, and what it calls the task."""

    dataflow: str
    owner: str
    task: str


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A task, or several that have the same users; sizes and places are in pixels."""

    id: str
    label: str
    name: str
    """``dataflow.task``, after the dataflow with which it came."""

    detail: str
    """The type of the active alternate, or how many tasks it stands for."""

    role: str
    tasks: int
    users: tuple[GraphUser, ...]
    """At most :data:`MOST_USERS` of them."""

    used_by: int
    owners: tuple[str, ...]
    alternate: str
    alternates: int
    stateful: bool
    paused: bool
    held: bool
    """Whether a person has chosen for it, so that no policy does."""

    limit: int | None
    partitions: int | None
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A stream, or several between the same nodes."""

    source: str
    target: str
    points: tuple[tuple[float, float], ...]
    streams: int
    feedback: bool


@dataclass(frozen=True, slots=True)
class RunningGraph:
    """A graph with its layout."""

    snapshot: int
    level: GraphLevel
    select: str
    tasks: int
    """How many tasks were selected."""

    running: int
    """How many tasks run."""

    submitted: int
    """How many tasks all dataflows have together, as their authors wrote them."""

    owners: tuple[str, ...]
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    width: float
    height: float
    node_width: float = WIDTH
    node_height: float = HEIGHT


MOST_USERS = 24


def running_graph(
    running: RunningSet,
    choices: SnapshotChoices,
    registry: Registry,
    *,
    snapshot: int,
    select: str = "",
    level: GraphLevel = GraphLevel.AUTO,
) -> RunningGraph:
    """Lay out what runs, or a part of it; raises :class:`~headgate.errors.InputError` for an unknown name in it."""
    tasks = running.tasks.as_dict()
    chosen = selected_tasks(running, select)
    chosen_tasks = {signature: used for signature, used in tasks.items() if signature in chosen}
    owners = {str(name): str(one.dataflow.owner) for name, one in running.submitted.items()}
    level, groups = grouped(chosen_tasks, owners, level)
    edges = _edges(chosen_tasks, groups)
    placed = layered(_layers(groups.values(), edges), [edge for edge, (_, back) in edges.items() if not back])
    members: dict[str, list[UsedTask]] = defaultdict(list)
    for signature, group in groups.items():
        members[group].append(chosen_tasks[signature])
    made = _NodeMaker(choices, registry, owners, placed)
    nodes = tuple(made.node(group, together) for group, together in members.items())
    width = max((node.x for node in nodes), default=0.0) + WIDTH + MARGIN
    height = max((node.y for node in nodes), default=0.0) + HEIGHT + MARGIN
    return RunningGraph(
        snapshot,
        level,
        select,
        len(chosen_tasks),
        len(tasks),
        sum(len(one.written.tasks) for one in running.submitted.values()),
        tuple(sorted(set(owners.values()))),
        nodes,
        tuple(made.edge(edge, count, back) for edge, (count, back) in edges.items()),
        width,
        height,
    )


def grouped(
    tasks: Mapping[Signature, UsedTask], owners: Mapping[str, str], level: GraphLevel
) -> tuple[GraphLevel, dict[Signature, str]]:
    """The node of each task, and the level that was asked for or that is small enough."""
    if level is GraphLevel.TASKS or (level is GraphLevel.AUTO and len(tasks) <= MOST_NODES):
        return GraphLevel.TASKS, {signature: str(signature) for signature in tasks}
    flows = {signature: _digest(used.users) for signature, used in tasks.items()}
    if level is GraphLevel.DATAFLOWS or (level is GraphLevel.AUTO and len(set(flows.values())) <= MOST_NODES):
        return GraphLevel.DATAFLOWS, flows
    teams = {signature: _digest({owners[name] for name in used.users}) for signature, used in tasks.items()}
    return GraphLevel.TEAMS, teams


def _digest(names: Iterable[str]) -> str:
    """A short id for a set of names, of which there may be thousands."""
    return hashlib.blake2b("\0".join(sorted(names)).encode(), digest_size=8).hexdigest()


def _edges(
    tasks: Mapping[Signature, UsedTask], groups: Mapping[Signature, str]
) -> dict[tuple[str, str], tuple[int, bool]]:
    """The edges between nodes, with how many streams they stand for and whether they lead back."""
    edges: dict[tuple[str, str], tuple[int, bool]] = {}
    for signature, used in tasks.items():
        for feed in used.running.feeds:
            if feed.source in tasks:
                edge = groups[feed.source], groups[signature]
                if edge[0] != edge[1] or feed.feedback:
                    count, back = edges.get(edge, (0, True))
                    edges[edge] = count + 1, back and feed.feedback
    return edges


def _layers(nodes: Iterable[str], edges: Mapping[tuple[str, str], tuple[int, bool]]) -> dict[str, int]:
    """Each node one layer after the last of those that feed it."""
    layer: dict[str, int] = dict.fromkeys(nodes, 0)
    feeding = dict.fromkeys(layer, 0)
    fed: dict[str, list[str]] = defaultdict(list)
    for (source, target), (_, back) in edges.items():
        if not back:
            fed[source].append(target)
            feeding[target] += 1
    ready = [node for node, count in feeding.items() if not count]
    while ready:
        node = ready.pop()
        for target in fed[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            feeding[target] -= 1
            if not feeding[target]:
                ready.append(target)
    return layer


class _NodeMaker:
    def __init__(
        self, choices: SnapshotChoices, registry: Registry, owners: Mapping[str, str], placed: Layered[str]
    ) -> None:
        self._choices, self._registry, self._owners, self._placed = choices, registry, owners, placed

    def node(self, group: str, members: list[UsedTask]) -> GraphNode:
        """A node for a task, or for several."""
        used = members[0]
        owners = sorted({self._owners[name] for one in members for name in one.users})
        flows = sorted({str(name) for one in members for name in one.users})
        single = group == used.running.signature
        users = tuple(
            GraphUser(name, self._owners[name], used.users.get(DataflowName(name), "") if single else "")
            for name in flows[:MOST_USERS]
        )
        x, y = self._place(group)
        signature, task = used.running.signature, used.running.task
        active = self._choices.alternate(signature, task)
        brought_by = used.running.brought_by if used.running.brought_by in used.users else min(used.users)
        own = used.users[brought_by]
        return GraphNode(
            id=group,
            label=own if single else _listed(flows if len(flows) <= 2 else owners),
            name=f"{brought_by}.{own}" if single else _listed(flows),
            detail=active.type if single else f"{len(members)} task{'s' if len(members) > 1 else ''}",
            role=self._role(active.type) if single else "group",
            tasks=len(members),
            users=users,
            used_by=len(flows),
            owners=tuple(owners),
            alternate=active.name if single else "",
            alternates=len(task.alternates) if single else 1,
            stateful=any(self._is_stateful(one) for one in members),
            paused=set(flows) <= self._choices.paused,
            held=any(one.running.signature in self._choices.held for one in members),
            limit=self._choices.limits.get(signature) if single else None,
            partitions=self._choices.partitions.get(signature) if single else None,
            x=x,
            y=y,
        )

    def edge(self, edge: tuple[str, str], streams: int, back: bool) -> GraphEdge:
        """An edge as a line from the right of its source to the left of its target."""
        (x0, y0), (x1, y1) = self._place(edge[0]), self._place(edge[1])
        bends = [] if back else [_pixels(layer, height) for layer, height in self._placed.bends.get(edge, ())]
        points = [(x0 + WIDTH, y0 + HEIGHT / 2)]
        for x, y in bends:
            points += [(x, y + HEIGHT / 2), (x + WIDTH, y + HEIGHT / 2)]
        points.append((x1, y1 + HEIGHT / 2))
        return GraphEdge(edge[0], edge[1], tuple(points), streams, back)

    def _place(self, group: str) -> tuple[float, float]:
        return _pixels(self._placed.layer[group], self._placed.height[group])

    def _role(self, kind: str) -> str:
        return self._registry[kind].role.value if kind in self._registry else Role.STEP.value

    def _is_stateful(self, used: UsedTask) -> bool:
        kind = self._choices.alternate(used.running.signature, used.running.task).type
        return kind in self._registry and self._registry[kind].stateful


def _pixels(layer: float, height: float) -> tuple[float, float]:
    return MARGIN + layer * (WIDTH + GAP_X), round(MARGIN + height * (HEIGHT + GAP_Y), 1)


def _listed(names: Sequence[str], most: int = 2) -> str:
    more = f" + {len(names) - most}" if len(names) > most else ""
    return ", ".join(names[:most]) + more
