"""Pictures of any dataflow: complete, well-formed, and no way for a label to become something else."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.model.service_level import ServiceLevel
from headgate.report.labels import stream_label, task_lines
from headgate.report.mermaid import to_mermaid
from headgate.report.svg import to_svg
from headgate.report.text import describe_service_level, to_text
from headgate.tasks.registry import default_registry
from tests.samples import DATAFLOW
from tests.strategies import dataflows

REGISTRY = default_registry()
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    '"/><x a="',
    "a&b;c#quot;d",
    "]]>",
    "\x1b[2J\x07",
    "`${x}`",
    "--> t0",
    "%%{init}%%",
]


def _hostile(text: str) -> Dataflow:
    where = f"v <> {json.dumps(text)}" if text.isprintable() else "v > 1"
    document = {
        "name": "hostile",
        "description": f"{text}\n{text}",
        "tasks": [
            {"id": "a", "type": "opaque", "config": {"label": text}, "ports": {"outputs": ["out"]}},
            {
                "id": "b",
                "type": "opaque",
                "inputs": [{"from": "a", "where": where}, {"from": "a", "key": ["x", "<y>"]}],
            },
        ],
    }
    return parse(json.dumps(document), "json").dataflow


@settings(max_examples=60)
@given(dataflows)
def test_a_picture_is_well_formed_and_shows_every_task(dataflow: Dataflow) -> None:
    root = ElementTree.fromstring(to_svg(dataflow, REGISTRY))
    shown = [text.text or "" for text in root.iter(f"{SVG}text")]
    for task in dataflow.tasks:
        assert task.id in shown or f"{task.id[:37]}..." in shown
    assert len(root.findall(f"{SVG}path")) == len(set(dataflow.streams))


@settings(max_examples=60)
@given(dataflows)
def test_a_flowchart_has_a_node_for_each_task_and_an_arrow_for_each_stream(dataflow: Dataflow) -> None:
    first, *lines = to_mermaid(dataflow, REGISTRY).splitlines()
    assert first == "flowchart LR"
    nodes, arrows = lines[: len(dataflow.tasks)], lines[len(dataflow.tasks) :]
    assert len(arrows) == len(dataflow.streams)
    for node, task in zip(nodes, dataflow.tasks, strict=True):
        assert re.fullmatch(r'    t\d+(\(\[|\[\(|\[)"[^"]*"(\]\)|\)\]|\])', node)
        assert f'"{task.id}<br/>' in node
    for arrow in arrows:
        assert re.fullmatch(r'    t\d+ (-->|-\.->)(\|"[^"]*"\|)? t\d+', arrow)


@settings(max_examples=60)
@given(dataflows)
def test_the_text_has_a_printable_line_for_each_task_after_those_that_feed_it(dataflow: Dataflow) -> None:
    text = to_text(dataflow)
    assert all(line.isprintable() for line in text.split("\n"))
    listed = [line.split()[0] for line in text.partition("\n\n  ")[2].splitlines()]
    assert sorted(listed) == sorted(task.id for task in dataflow.tasks)
    for stream in dataflow.streams:
        if not stream.feedback:
            assert listed.index(stream.source) < listed.index(stream.target)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_labels_stay_labels(text: str) -> None:
    dataflow = _hostile(text)
    root = ElementTree.fromstring(to_svg(dataflow, REGISTRY))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        *("svg", "title", "style", "defs", "marker", "path", "rect", "text", "g")
    }
    flowchart = to_mermaid(dataflow, REGISTRY)
    assert "<script>" not in flowchart
    for line in flowchart.splitlines():
        assert line.count('"') in (0, 2)
    assert "\x1b" not in to_text(dataflow) + to_svg(dataflow, REGISTRY) + flowchart


def test_mermaids_own_escapes_are_escaped() -> None:
    text = "tasks: [{id: a, type: rate}, {id: b, type: union, inputs: [{from: a, where: \"value <> '#quot;'\"}]}]"
    assert "#35;quot;" in to_mermaid(parse(text, "yaml").dataflow, REGISTRY)


def test_labels_say_what_is_particular() -> None:
    labels = {str(stream): stream_label(stream) for stream in DATAFLOW.streams}
    assert labels["read:out -> clean:in"] == "where v < 100"
    assert labels["other:out -> clean:in"] == "by id, t"
    assert labels["clean:out -> smooth:in"] == ""
    assert labels["smooth:out -> pair:in"] == "left"
    assert labels["other:out -> pair:in"] == "right"
    assert labels["loop:out -> split:back"] == "out → back; feedback"
    lines: dict[str, list[str]] = {task.id: task_lines(task) for task in DATAFLOW.tasks}
    assert lines["smooth"] == ["smooth", "fine 1", "coarse 0.5"]
    assert lines["clean"] == ["clean", "filter"]


def test_long_labels_are_cut() -> None:
    text = f"tasks: [{{id: a, type: opaque}}, {{id: b, type: union, inputs: [{{from: a, where: {'x' * 100} > 1}}]}}]"
    (stream,) = parse(text, "yaml").dataflow.streams
    assert len(stream_label(stream)) == 48


def test_the_service_level_in_words() -> None:
    assert describe_service_level(ServiceLevel()) == "throughput at least 0.8 ± 0.05"
    assert describe_service_level(DATAFLOW.service_level) == (
        "throughput at least 0.7 ± 0.1, latency at most 3 s (resources may go below 0.5 s), budget 2.25 an hour, "
        "breaks even at 1.5 to 4 an hour, at most 12 processors"
    )


def test_a_type_that_nobody_knows_is_drawn_as_a_step() -> None:
    from headgate.tasks.registry import Registry

    dataflow = parse("tasks: [{id: a, type: rate}]", "yaml").dataflow
    assert 't0["a<br/>rate"]' in to_mermaid(dataflow, Registry([]))
    assert 'class="box step"' in to_svg(dataflow, Registry([]))
