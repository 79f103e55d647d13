"""A dataflow in pixels: how big each box is, its place, and the path of each stream.

Boxes are in columns, one for each layer. Between two columns is a gap in which streams first bend to the height at
which they enter the next box and then run straight; their labels are on the straight part, clear of any line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.stream import Stream
from headgate.report.labels import stream_label, task_lines
from headgate.report.layout import PictureLayout, Point

__all__ = ["LINE", "MARGIN", "Label", "Picture", "StreamPath", "TaskBox", "cut", "text_width"]

MARGIN, LINE, PAD = 24.0, 17.0, 12.0
HEAD, GAP_Y = 46.0, 26.0
BEND, TIP = 44.0, 20.0
"""Widths of the part of a gap in which streams bend, and of the last straight part, with the arrow's tip."""

SLOT = 17.0
"""How far apart streams with labels enter a box."""

LANE, OUTSIDE = 24.0, 12.0
"""How far apart feedback streams run below the boxes, and how far beside their boxes they go down and up."""


@dataclass(frozen=True, slots=True)
class TaskBox:
    """A task: its left edge, the height of its middle, its size and its lines of text."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """The text on a stream; ``x`` is the middle of the text."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class StreamPath:
    """The points that a stream passes, and its label if it has one."""

    points: tuple[Point, ...]
    label: Label | None = None


class Picture:
    """Boxes by task, routes by stream, and the size of the whole."""

    def __init__(self, dataflow: Dataflow, layout: PictureLayout, notes: Mapping[TaskId, str]) -> None:
        self._layout = layout
        self._streams = list(dict.fromkeys(dataflow.streams))
        back = (stream for stream in self._streams if stream.feedback)
        self._loops = {stream: number for number, stream in enumerate(back)}
        self._entering: dict[TaskId, list[Stream]] = {task.id: [] for task in dataflow.tasks}
        for stream in self._streams:
            self._entering[stream.target].append(stream)
        lines = {task.id: tuple(map(cut, _lines(task_lines(task), notes.get(task.id)))) for task in dataflow.tasks}
        layers = max(layout.layer.values(), default=0) + 1
        self._widths = [0.0] * layers
        for task, text in lines.items():
            layer = layout.layer[task]
            self._widths[layer] = max(
                self._widths[layer], *(_line_width(i, line) + 2 * PAD for i, line in enumerate(text))
            )
        self._lefts = self._columns(layers)
        heights = {task: max(len(text) * LINE + PAD, (self._slots(task) + 0.5) * SLOT) for task, text in lines.items()}
        self._unit = max(heights.values(), default=LINE) + GAP_Y
        self.boxes = {
            task: TaskBox(
                self._lefts[layout.layer[task]],
                self._middle(layout.height[task]),
                self._widths[layout.layer[task]],
                heights[task],
                text,
            )
            for task, text in lines.items()
        }
        self._bottom = self._middle(max(layout.tallest, 0.0)) + self._unit / 2
        self._entries = {stream: height for task in self.boxes for stream, height in self._entry_heights(task).items()}
        self.paths = {stream: self._path(stream) for stream in self._streams}
        self.size = self._size()

    def _columns(self, layers: int) -> list[float]:
        """The left edge of each column, after a gap that is wide enough for the labels in it."""
        room = [0.0] * layers
        for stream in self._streams:
            if not stream.feedback and (text := stream_label(stream)):
                gap = self._layout.layer[stream.target] - 1
                room[gap] = max(room[gap], text_width(text, 11) + 6)
        loops = {self._layout.layer[stream.target] for stream in self._loops}
        lefts = [MARGIN + (OUTSIDE * 2 if 0 in loops else 0)]
        for layer in range(layers - 1):
            lefts.append(lefts[-1] + self._widths[layer] + BEND + room[layer] + TIP)
        return lefts

    def _middle(self, height: float) -> float:
        return MARGIN + HEAD + (height + 0.5) * self._unit

    def _labelled(self, task: TaskId) -> bool:
        return any(stream_label(stream) for stream in self._entering[task] if not stream.feedback)

    def _slots(self, task: TaskId) -> int:
        """At how many heights streams enter: those with labels apart, those without together, feedback below."""
        forward = sum(not stream.feedback for stream in self._entering[task])
        back = len(self._entering[task]) - forward
        return back + (forward if self._labelled(task) else min(forward, 1))

    def _entry_heights(self, task: TaskId) -> dict[Stream, float]:
        slots, together = self._slots(task), not self._labelled(task)
        entering = sorted(self._entering[task], key=lambda stream: (stream.feedback, self._coming_from(stream)))
        top = self.boxes[task].y - (slots - 1) * SLOT / 2
        heights: dict[Stream, float] = {}
        slot = -1
        for stream in entering:
            if slot < 0 or stream.feedback or not together:
                slot += 1
            heights[stream] = top + slot * SLOT
        return heights

    def _coming_from(self, stream: Stream) -> float:
        bends = self._layout.bends.get(stream)
        return bends[-1][1] if bends else self._layout.height[stream.source]

    def _path(self, stream: Stream) -> StreamPath:
        source, target = self.boxes[stream.source], self.boxes[stream.target]
        start, end = (source.x + source.width, source.y), (target.x, self._entries[stream])
        if stream.feedback:
            return self._loop(stream, start, end)
        points = [start]
        for layer, height in self._layout.bends.get(stream, ()):
            left, y = self._lefts[int(layer)], self._middle(height)
            points += [(points[-1][0] + BEND, y), (left + self._widths[int(layer)], y)]
        points += [(points[-1][0] + BEND, end[1]), end]
        text = stream_label(stream)
        if not text:
            return StreamPath(tuple(points))
        return StreamPath(tuple(points), Label(text, (points[-2][0] + end[0] - TIP / 2) / 2, end[1] - 5))

    def _loop(self, stream: Stream, start: Point, end: Point) -> StreamPath:
        number = self._loops[stream]
        low = self._bottom + number * LANE
        start = (start[0], start[1] + SLOT / 2)
        out, back = start[0] + OUTSIDE + 4 * number, end[0] - OUTSIDE - 4 * number
        points = (start, (out, start[1]), (out, low), (back, low), (back, end[1]), end)
        return StreamPath(points, Label(stream_label(stream), (out + back) / 2, low + 13))

    def _size(self) -> Point:
        right = self._lefts[-1] + self._widths[-1]
        for path in self.paths.values():
            right = max(right, *(x for x, _ in path.points))
            if path.label:
                right = max(right, path.label.x + text_width(path.label.text, 11) / 2)
        return right + MARGIN, self._bottom + len(self._loops) * LANE + MARGIN / 2


def _lines(lines: Sequence[str], note: str | None) -> list[str]:
    return [*lines, note] if note else [*lines]


def _line_width(number: int, line: str) -> float:
    """A task's first line is its id, in bold."""
    return text_width(line, 13) * 1.13 if number == 0 else text_width(line, 12)


def text_width(text: str, size: float) -> float:
    """About how many pixels a text takes; generous, since fonts differ.

    >>> text_width("ill", 10) < text_width("abc", 10) < text_width("MWM", 10)
    True
    """
    return size * sum(map(_ems, text))


def _ems(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in "iljtfI.,:;|!'()[]{} ":
        return 0.38
    if character in "mwMW@%→":
        return 0.98
    return 0.72 if character.isupper() else 0.63


def cut(text: str, most: int = 40) -> str:
    """At most so many characters of a text, with dots where it was cut."""
    return text if len(text) <= most else text[: most - 3] + "..."
