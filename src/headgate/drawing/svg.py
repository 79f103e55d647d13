"""Dataflows as SVG: one self-contained picture, legible in light and dark surroundings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from headgate.drawing.labels import stream_label, task_lines
from headgate.drawing.layout import Layout, Point, arrange
from headgate.errors import printable
from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.registry import Registry
from headgate.model.stream import Stream
from headgate.model.task import Task

__all__ = ["to_svg"]

MARGIN, GAP_X, GAP_Y, LINE, PAD, CHARACTER = 24.0, 64.0, 26.0, 17.0, 12.0, 7.3

_STYLE = """
  text { font: 13px ui-sans-serif, system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1d2733 }
  .title { font-size: 15px; font-weight: 600 } .quiet { fill: #5b6875; font-size: 12px } .id { font-weight: 600 }
  .box { stroke-width: 1.4 } .source { fill: #e3f1e6; stroke: #3c8a4f } .step { fill: #eaf0f9; stroke: #4a74b5 }
  .sink { fill: #fbeedd; stroke: #c0802f } .dynamic { fill: #f1e9f8; stroke: #8152b3 }
  .stream { fill: none; stroke: #66737f; stroke-width: 1.4 } .feedback { stroke-dasharray: 5 4 }
  .state { fill: none; stroke-width: 1 }
  .label { font-size: 11px; fill: #45525e; paint-order: stroke; stroke: #fff; stroke-width: 4px }
"""


class _Picture:
    """Sizes and places of the boxes."""

    def __init__(self, dataflow: Dataflow, layout: Layout, notes: Mapping[TaskId, str]) -> None:
        self.lines = {
            task.id: [_cut(line) for line in [*task_lines(task), *filter(None, [notes.get(task.id)])]]
            for task in dataflow.tasks
        }
        self.width = {
            task: max(len(line) for line in lines) * CHARACTER + 2 * PAD for task, lines in self.lines.items()
        }
        self.height = {task: len(lines) * LINE + PAD for task, lines in self.lines.items()}
        layers = max(layout.layer.values(), default=0) + 1
        widest = [max(w for t, w in self.width.items() if layout.layer[t] == layer) for layer in range(layers)]
        label_room = _label_room(dataflow, layout, layers)
        self.left = [MARGIN]
        for layer in range(layers - 1):
            self.left.append(self.left[-1] + widest[layer] + GAP_X + label_room[layer])
        self.widest = widest
        self.unit = max(self.height.values(), default=LINE) + GAP_Y
        self.top = MARGIN + 46
        self.layer = layout.layer
        self.y = {task: self.top + height * self.unit + self.unit / 2 for task, height in layout.height.items()}
        tallest = max((self.y[t] + self.unit / 2 for t in self.y), default=self.top)
        self.size = (
            self.left[-1] + widest[-1] + MARGIN,
            tallest + (GAP_Y * 2 if _has_feedback(dataflow) else 0) + MARGIN / 2,
        )

    def start(self, task: TaskId) -> Point:
        return self.left[self.layer[task]] + self.width[task], self.y[task]

    def end(self, task: TaskId) -> Point:
        return self.left[self.layer[task]], self.y[task]


def to_svg(dataflow: Dataflow, registry: Registry, notes: Mapping[TaskId, str] | None = None) -> str:
    """Draw a dataflow; ``notes`` adds a line to tasks, such as who uses them."""
    layout = arrange(dataflow)
    picture = _Picture(dataflow, layout, notes or {})
    title = f"{dataflow.name}: {len(dataflow.tasks)} tasks, {len(dataflow.streams)} streams"
    subtitle = _cut(dataflow.description or f"owner {dataflow.owner}", 120)
    width, height = max(picture.size[0], len(title) * 8.5 + 2 * MARGIN), picture.size[1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img">',
        f"<title>{_text(title)}</title><style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#66737f"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
        f'<text class="title" x="{MARGIN}" y="{MARGIN + 8}">{_text(title)}</text>',
        f'<text class="quiet" x="{MARGIN}" y="{MARGIN + 27}">{_text(subtitle)}</text>',
    ]
    labels: list[str] = []
    for stream in dict.fromkeys(dataflow.streams):
        points = _route(stream, picture, layout)
        look = "stream feedback" if stream.feedback else "stream"
        parts.append(f'<path class="{look}" d="{_curve(points)}" marker-end="url(#tip)"/>')
        labels += _label(stream, points)
    parts += [_box(task, registry, picture) for task in dataflow.tasks]
    return "\n".join([*parts, *labels, "</svg>"]) + "\n"


def _box(task: Task, registry: Registry, picture: _Picture) -> str:
    x, y = picture.end(task.id)
    width, height = picture.width[task.id], picture.height[task.id]
    kind = registry.get(task.type)
    look = "dynamic" if task.is_dynamic else kind.role.value if kind else "step"
    radius = height / 2 if look == "source" else 6
    top = y - height / 2
    outer = f'x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{min(radius, 18):.1f}"'
    drawn = f'<rect class="box {look}" {outer}/>'
    if kind is not None and kind.stateful:
        inner = f'x="{x + 3:.1f}" y="{top + 3:.1f}" width="{width - 6:.1f}" height="{height - 6:.1f}" rx="4"'
        drawn += f'<rect class="box state {look}" style="fill:none" {inner}/>'
    for number, line in enumerate(picture.lines[task.id]):
        place = f'x="{x + width / 2:.1f}" y="{top + PAD / 2 + LINE * (number + 0.75):.1f}"'
        drawn += f'<text class="{"quiet" if number else "id"}" text-anchor="middle" {place}>{_text(line)}</text>'
    return f"<g>{drawn}</g>"


def _route(stream: Stream, picture: _Picture, layout: Layout) -> list[Point]:
    start, end = picture.start(stream.source), picture.end(stream.target)
    if stream.feedback:
        low = picture.size[1] - GAP_Y - MARGIN / 2
        return [start, (start[0] + 18, low), (end[0] - 18, low), end]
    points = [start]
    for layer, height in layout.bends.get(stream, ()):
        left, y = picture.left[int(layer)], picture.top + height * picture.unit + picture.unit / 2
        points += [(left, y), (left + picture.widest[int(layer)], y)]
    return [*points, end]


def _curve(points: Sequence[Point]) -> str:
    (x, y), *rest = points
    path = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in rest:
        bend = (to_x - x) / 2 if to_x > x else 0.0
        path += f"C{x + bend:.1f} {y:.1f} {to_x - bend:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return path


def _label(stream: Stream, points: Sequence[Point]) -> list[str]:
    text = stream_label(stream)
    if not text:
        return []
    before, end = points[-2], points[-1]
    if stream.feedback:
        x, y = (points[1][0] + points[2][0]) / 2, points[1][1] - 5
    else:
        x, y = (before[0] + end[0]) / 2, (before[1] + end[1]) / 2 - 5
    return [f'<text class="label" text-anchor="middle" x="{x:.1f}" y="{y:.1f}">{_text(text)}</text>']


def _label_room(dataflow: Dataflow, layout: Layout, layers: int) -> list[float]:
    """How much wider the gap behind each layer must be for the labels that stand in it."""
    room = [0.0] * layers
    for stream in dataflow.streams:
        gap = layout.layer[stream.target] - 1
        if not stream.feedback and gap >= 0:
            room[gap] = max(room[gap], len(stream_label(stream)) * 6.2 - GAP_X + 28)
    return room


def _has_feedback(dataflow: Dataflow) -> bool:
    return any(stream.feedback for stream in dataflow.streams)


def _cut(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _text(text: str) -> str:
    return escape(printable(text.replace("\n", " ")))
