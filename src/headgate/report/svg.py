"""Dataflows as SVG: one self-contained picture, legible in light and dark surroundings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from headgate.errors import counted, printable
from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.task import Task
from headgate.report.layout import Point, arrange
from headgate.report.picture import LINE, MARGIN, Label, Picture, TaskBox, cut, text_width
from headgate.tasks.registry import Registry

__all__ = ["to_svg"]

_STYLE = """
  text { font: 13px ui-sans-serif, system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1d2733 }
  .title { font-size: 15px; font-weight: 600 } .quiet { fill: #5b6875; font-size: 12px } .id { font-weight: 600 }
  .box { stroke-width: 1.4 } .source { fill: #e3f1e6; stroke: #3c8a4f } .step { fill: #eaf0f9; stroke: #4a74b5 }
  .sink { fill: #fbeedd; stroke: #c0802f } .dynamic { fill: #f1e9f8; stroke: #8152b3 }
  .stream { fill: none; stroke: #66737f; stroke-width: 1.4 } .feedback { stroke-dasharray: 5 4 }
  .state { fill: none; stroke-width: 1 }
  .label { font-size: 11px; fill: #45525e }
"""


def to_svg(dataflow: Dataflow, registry: Registry, notes: Mapping[TaskId, str] | None = None) -> str:
    """Draw a dataflow; ``notes`` adds a line to tasks, such as who uses them."""
    picture = Picture(dataflow, arrange(dataflow), notes or {})
    title = f"{dataflow.name}: {counted(len(dataflow.tasks), 'task')}, {counted(len(dataflow.streams), 'stream')}"
    subtitle = cut(dataflow.description or f"owner {dataflow.owner}", 120)
    room = max(text_width(title, 15) * 1.13, text_width(subtitle, 12)) + 2 * MARGIN
    width, height = max(picture.size[0], room), picture.size[1]
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
    for stream, path in picture.paths.items():
        look, line = ("stream feedback", _cornered) if stream.feedback else ("stream", _curved)
        parts.append(f'<path class="{look}" d="{line(path.points)}" marker-end="url(#tip)"/>')
    parts += [_box(task, registry, picture.boxes[task.id]) for task in dataflow.tasks]
    parts += [_label(path.label) for path in picture.paths.values() if path.label]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(task: Task, registry: Registry, box: TaskBox) -> str:
    kind = registry.get(task.type)
    look = "dynamic" if task.is_dynamic else kind.role.value if kind else "step"
    radius = 18 if look == "source" else 6
    top = box.y - box.height / 2
    outer = f'x="{box.x:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"'
    drawn = f'<rect class="box {look}" {outer}/>'
    if any(registry[alternate.type].stateful for alternate in task.alternates if alternate.type in registry):
        inner = f'x="{box.x + 3:.1f}" y="{top + 3:.1f}" width="{box.width - 6:.1f}" height="{box.height - 6:.1f}"'
        drawn += f'<rect class="box state {look}" style="fill:none" {inner} rx="{radius - 3}"/>'
    first = box.y - len(box.lines) * LINE / 2
    for number, line in enumerate(box.lines):
        place = f'x="{box.x + box.width / 2:.1f}" y="{first + LINE * (number + 0.75):.1f}"'
        drawn += f'<text class="{"quiet" if number else "id"}" text-anchor="middle" {place}>{_text(line)}</text>'
    return f"<g>{drawn}</g>"


def _label(label: Label) -> str:
    place = f'x="{label.x:.1f}" y="{label.y:.1f}"'
    return f'<text class="label" text-anchor="middle" {place}>{_text(label.text)}</text>'


def _curved(points: Sequence[Point]) -> str:
    """From point to point, level at each of them."""
    (x, y), *rest = points
    path = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in rest:
        if to_y == y:
            path += f"H{to_x:.1f}"
        else:
            middle = (x + to_x) / 2
            path += f"C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return path


def _cornered(points: Sequence[Point], radius: float = 8) -> str:
    """Straight from point to point, with round corners."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = _towards(corner, before, radius), _towards(corner, after, radius)
        path += f"L{start[0]:.1f} {start[1]:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    return path + f"L{points[-1][0]:.1f} {points[-1][1]:.1f}"


def _towards(point: Point, other: Point, most: float) -> Point:
    """The point that lies so far from one towards another, but no farther than half way."""
    dx, dy = other[0] - point[0], other[1] - point[1]
    length = max(abs(dx), abs(dy))
    share = min(most, length / 2) / length if length else 0.0
    return point[0] + dx * share, point[1] + dy * share


def _text(text: str) -> str:
    return escape(printable(text.replace("\n", " ")))
