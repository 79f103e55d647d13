"""Where each task goes in a picture: layers from left to right, few crossings (Sugiyama, by igraph)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import TaskId
from headgate.model.stream import Stream

__all__ = ["Layered", "PictureLayout", "arrange", "layered"]

Point = tuple[float, float]
Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PictureLayout:
    """Layer and height of each task, in units of one task, and where streams that pass layers by bend."""

    layer: Mapping[TaskId, int]
    height: Mapping[TaskId, float]
    bends: Mapping[Stream, tuple[Point, ...]]

    @property
    def tallest(self) -> float:
        """The greatest height of a task or a passing stream."""
        return max([*self.height.values(), *(y for points in self.bends.values() for _, y in points)], default=0.0)


@dataclass(frozen=True, slots=True)
class Layered(Generic[Node]):
    """Layer and height of each node, in units of one node, and where edges that pass layers by bend."""

    layer: Mapping[Node, int]
    height: Mapping[Node, float]
    bends: Mapping[tuple[Node, Node], tuple[Point, ...]]


def layered(layer: Mapping[Node, int], edges: Iterable[tuple[Node, Node]]) -> Layered[Node]:
    """Lay out an acyclic graph whose layers are known; each edge leads to a later layer.

    >>> layered({"a": 0, "b": 1, "c": 2}, [("a", "b"), ("b", "c"), ("a", "c")]).bends[("a", "c")][0][0]
    1.0
    """
    import igraph

    nodes = {node: index for index, node in enumerate(layer)}
    layers = list(layer.values())
    parts: list[tuple[int, int]] = []
    passing: dict[tuple[Node, Node], list[int]] = {}
    for source, target in dict.fromkeys(edges):
        before = nodes[source]
        for between in range(layer[source] + 1, layer[target]):
            layers.append(between)
            passing.setdefault((source, target), []).append(len(layers) - 1)
            parts.append((before, len(layers) - 1))
            before = len(layers) - 1
        parts.append((before, nodes[target]))
    placed = igraph.Graph(n=len(layers), edges=parts, directed=True).layout_sugiyama(layers=layers, hgap=1, vgap=1)
    heights = _apart([float(point[0]) for point in placed.coords[: len(layers)]], layers)
    lowest = min(heights, default=0.0)
    return Layered(
        layer,
        {node: heights[index] - lowest for node, index in nodes.items()},
        {edge: tuple((float(layers[i]), heights[i] - lowest) for i in points) for edge, points in passing.items()},
    )


def arrange(dataflow: Dataflow) -> PictureLayout:
    """Lay a dataflow out; each task is one layer after the last of those that feed it."""
    graph = Graph(dataflow)
    layer: dict[TaskId, int] = dict.fromkeys((task.id for task in dataflow.tasks), 0)
    for task in graph.order():
        layer[task] = max((layer[s.source] + 1 for s in graph.feeds[task] if not s.feedback), default=0)
    streams = [stream for stream in dict.fromkeys(dataflow.streams) if not stream.feedback]
    placed = layered(layer, ((stream.source, stream.target) for stream in streams))
    bends = {stream: placed.bends.get((stream.source, stream.target), ()) for stream in streams}
    return PictureLayout(placed.layer, placed.height, {stream: points for stream, points in bends.items() if points})


def _apart(heights: list[float], layers: list[int]) -> list[float]:
    """Move what is in one layer at least one unit apart, which igraph does not always do.

    >>> _apart([0.0, 2.0, 2.0, 2.5], [0, 0, 0, 1])
    [0.0, 2.0, 3.0, 2.5]
    """
    free: dict[int, float] = {}
    moved = list(heights)
    for node in sorted(range(len(heights)), key=lambda node: heights[node]):
        moved[node] = max(heights[node], free.get(layers[node], heights[node]))
        free[layers[node]] = moved[node] + 1
    return moved
