"""Pictures in which nothing overlaps: boxes, labels and the edge of the picture."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headgate import Dataflow, default_registry, parse, read
from headgate.report.layout import arrange
from headgate.report.picture import Label, Picture, TaskBox, text_width
from headgate.report.svg import to_svg
from headgate_benchmarks.workloads import layered_document

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Area = tuple[float, float, float, float]
"""Left, top, right, bottom."""

LOOPS = """
name: loops
tasks:
- {id: a, type: opaque, ports: {outputs: [x, y]}}
- {id: b, type: opaque, inputs: [{from: a:x, where: v > 1}, {from: a:y, where: v > 2}, {from: c, feedback: true}]}
- {id: c, type: opaque, inputs: [b, {from: d, feedback: true}, {from: a:y, key: [k, long_name_of_a_column]}]}
- {id: d, type: opaque, inputs: [c, {from: d, feedback: true}]}
- {id: e, type: write_console, inputs: [d]}
"""


def _dataflows() -> list[Dataflow]:
    found = [read(EXAMPLES / name).dataflow for name in ("city/alarms.yaml", "city/quality.py", "tweets/tweets.xml")]
    found += [read(EXAMPLES / "patterns/patterns.yaml").dataflow, parse(LOOPS, "yaml").dataflow]
    return found + [parse(json.dumps(layered_document(60, seed)), "json").dataflow for seed in range(5)]


DATAFLOWS = _dataflows()


def _box(box: TaskBox) -> Area:
    return box.x, box.y - box.height / 2, box.x + box.width, box.y + box.height / 2


def _label(label: Label) -> Area:
    half = text_width(label.text, 11) / 2
    return label.x - half, label.y - 10, label.x + half, label.y + 3


def _overlap(one: Area, two: Area) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


@pytest.mark.parametrize("dataflow", DATAFLOWS, ids=lambda dataflow: dataflow.name)
def test_boxes_and_labels_keep_apart_and_inside(dataflow: Dataflow) -> None:
    picture = Picture(dataflow, arrange(dataflow), {})
    areas = [_box(box) for box in picture.boxes.values()]
    areas += [_label(path.label) for path in picture.paths.values() if path.label]
    assert not [pair for pair in combinations(areas, 2) if _overlap(*pair)]
    width, height = picture.size
    assert all(left >= 0 and top >= 0 and right <= width and bottom <= height for left, top, right, bottom in areas)


@pytest.mark.parametrize("dataflow", DATAFLOWS, ids=lambda dataflow: dataflow.name)
def test_no_straight_part_of_a_stream_runs_through_a_box(dataflow: Dataflow) -> None:
    picture = Picture(dataflow, arrange(dataflow), {})
    boxes = [_box(box) for box in picture.boxes.values()]
    for path in picture.paths.values():
        for (x, y), (to_x, to_y) in pairwise(path.points):
            if x == to_x or y == to_y:
                line = (min(x, to_x) + 0.1, min(y, to_y), max(x, to_x) - 0.1, max(y, to_y))
                assert not [box for box in boxes if _overlap(box, line)]


@pytest.mark.parametrize("dataflow", DATAFLOWS, ids=lambda dataflow: dataflow.name)
def test_the_picture_names_every_task_and_every_note(dataflow: Dataflow) -> None:
    notes = {task.id: f"note <{number}> & more" for number, task in enumerate(dataflow.tasks)}
    root = ElementTree.fromstring(to_svg(dataflow, default_registry(), notes))
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert texts >= {task.id for task in dataflow.tasks} | set(notes.values())


def test_a_long_description_fits() -> None:
    dataflow = parse(f"description: {'m' * 200}\ntasks: [{{id: a, type: rate}}]", "yaml").dataflow
    root = ElementTree.fromstring(to_svg(dataflow, default_registry()))
    assert float(root.get("width", "0")) > text_width("m" * 117 + "...", 12)
