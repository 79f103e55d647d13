"""Where each task goes in a picture: layers from left to right, few crossings (Sugiyama, by igraph)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import TaskId
from headgate.model.stream import Stream

__all__ = ["PictureLayout", "arrange"]

Point = tuple[float, float]


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


def arrange(dataflow: Dataflow) -> PictureLayout:
    """Lay a dataflow out; each task is one layer after the last of those that feed it."""
    import igraph

    graph = Graph(dataflow)
    layer: dict[TaskId, int] = {}
    for task in graph.order():
        layer[task] = max((layer[s.source] + 1 for s in graph.feeds[task] if not s.feedback), default=0)
    nodes = {task.id: index for index, task in enumerate(dataflow.tasks)}
    layers = [layer[task.id] for task in dataflow.tasks]
    edges: list[tuple[int, int]] = []
    passing: dict[Stream, list[int]] = {}
    for stream in dict.fromkeys(stream for stream in dataflow.streams if not stream.feedback):
        before = nodes[stream.source]
        for between in range(layer[stream.source] + 1, layer[stream.target]):
            layers.append(between)
            passing.setdefault(stream, []).append(len(layers) - 1)
            edges.append((before, len(layers) - 1))
            before = len(layers) - 1
        edges.append((before, nodes[stream.target]))
    placed = igraph.Graph(n=len(layers), edges=edges, directed=True).layout_sugiyama(layers=layers, hgap=1, vgap=1)
    heights = _apart([float(point[0]) for point in placed.coords[: len(layers)]], layers)
    lowest = min(heights, default=0.0)
    return PictureLayout(
        layer,
        {task: heights[index] - lowest for task, index in nodes.items()},
        {stream: tuple((float(layers[i]), heights[i] - lowest) for i in points) for stream, points in passing.items()},
    )


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
