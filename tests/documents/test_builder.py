"""Dataflows written in Python."""

from __future__ import annotations

from inspect import currentframe
from pathlib import Path

import pytest

from headgate import Flow, InputError, InvalidDataflow, ServiceLevel, alternate, parse, read
from headgate.documents.builder import FlowTask
from headgate.model.stream import ByKey, ByPredicate
from headgate.model.task import Gather


def _line() -> int:
    frame = currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_a_chain_reads_like_what_it_does() -> None:
    flow = Flow("hot", owner="ana", description="d")
    source = flow.source("rate", rows_per_s=5)
    last = source >> flow.task("filter", where="value > 1") >> flow.sink("write_console")
    dataflow = flow.build()
    assert repr(last) == "<write_console>"
    assert [task.id for task in dataflow.tasks] == ["rate", "filter", "write_console"]
    assert [str(stream) for stream in dataflow.streams] == ["rate:out -> filter:in", "filter:out -> write_console:in"]
    assert (dataflow.name, dataflow.owner, dataflow.description) == ("hot", "ana", "d")


def test_the_same_as_yaml() -> None:
    flow = Flow("f", service_level={"throughput_min": 0.5})
    a = flow.source("rate", id="a")
    b = flow.task(
        "opaque", id="b", cost_s=0.5, selectivity=2, label="x", ports={"outputs": ["x", "y"], "inputs": ["in"]}
    )
    a.where("value > 1") >> b
    b.port("y").by("k") >> flow.sink("write_console", id="c")
    text = """
    name: f
    service_level: {throughput_min: 0.5}
    tasks:
    - {id: a, type: rate}
    - {id: b, type: opaque, cost_s: 0.5, selectivity: 2, config: {label: x},
       ports: {inputs: [in], outputs: [x, y]}, inputs: [{from: a, where: value > 1}]}
    - {id: c, type: write_console, inputs: [{from: "b:y", key: [k]}]}
    """
    assert flow.build() == parse(text, "yaml").dataflow


def test_several_streams_into_one_task_keep_their_order() -> None:
    flow = Flow("f")
    left, right = (flow.source("read_files", id=name, path=name, columns="k string, t timestamp") for name in "ab")
    join = flow.task("join", on=["k"], time=["t", "t"], within="1s")
    assert ([right, left] >> join) is join
    streams = flow.build().streams
    assert [(stream.source, stream.side) for stream in streams] == [("b", 0), ("a", 1)]


def test_outlets_and_inlets_may_be_mixed() -> None:
    flow = Flow("f")
    a, b = flow.source("rate", id="a"), flow.source("rate", id="b")
    ports = {"inputs": ["one", {"name": "two", "gather": "join"}], "outputs": ["out"]}
    both = flow.task("opaque", id="both", ports=ports)
    a >> both.into("one")
    [a.where("value > 1"), b.by("value")] >> both.into("two")
    dataflow = flow.build()
    assert [(s.target_port, s.side) for s in dataflow.streams] == [("one", None), ("two", 0), ("two", 1)]
    assert [type(s.routing) for s in dataflow.streams[1:]] == [ByPredicate, ByKey]
    declared = dataflow.tasks[2].ports
    assert declared is not None
    assert declared.inputs[1].gather is Gather.JOIN


def test_routing_and_feedback_go_together() -> None:
    flow = Flow("f")
    start, loop = flow.source("opaque", id="s", ports={"outputs": ["out"]}), flow.task("opaque", id="l")
    start >> loop
    loop.port("out").where("v > 1").feedback() >> loop
    stream = flow.build().streams[1]
    assert (stream.feedback, stream.routing) == (True, ByPredicate("v > 1"))
    again = Flow("f")
    start, loop = again.source("opaque", id="s", ports={"outputs": ["out"]}), again.task("opaque", id="l")
    start >> loop
    loop.feedback() >> loop
    assert again.build().streams[1].feedback


def test_alternates() -> None:
    flow = Flow("f")
    ways = (
        alternate("filter", name="strict", value=0.5, where="value > 3", cost_s=1),
        alternate("filter", name="lax", config={"where": "value > 1"}, selectivity=0.25),
    )
    flow.source("rate") >> flow.task(None, *ways, id="t")
    task = flow.build().tasks[1]
    assert [(way.name, way.value, way.cost_s, way.selectivity) for way in task.alternates] == [
        ("strict", 0.5, 1, None),
        ("lax", 1.0, None, 0.25),
    ]
    assert [way.config["where"] for way in task.alternates] == ["value > 3", "value > 1"]


def test_ids_are_made_from_types_and_numbered() -> None:
    flow = Flow("f")
    named = flow.source("rate", id="rate_2")
    assert [flow.source("rate").id for _ in range(3)] == ["rate", "rate_3", "rate_4"]
    assert named.id == "rate_2"
    assert flow.task(None, alternate("union")).id == "task"


def test_options_whose_names_python_keeps_for_itself_go_into_config() -> None:
    flow = Flow("f")
    flow.task("opaque", config={"label": "a"}, options={"id": 1}) >> flow.sink("write_memory", config={"name": "n"})
    configs = [task.config.as_dict() for task in flow.build().tasks]
    assert configs == [{"label": "a", "options": {"id": 1}}, {"name": "n"}]


def test_a_service_level_may_be_a_value() -> None:
    level = ServiceLevel(throughput_min=0.6, latency_max_s=3.0)
    flow = Flow("f", service_level=level)
    flow.source("rate")
    assert flow.build().service_level == level


def test_faults_tell_the_line_of_python() -> None:
    flow = Flow("bad name"); made = _line()  # noqa: E702  # fmt: skip
    a = flow.source("raet"); first = _line()  # noqa: E702  # fmt: skip
    b = flow.task(
        "filter",
        where="v >",
    )
    second = _line() - 4
    good, last = flow.source("rate"), flow.sink("write_console")
    good.port("nope") >> last; third = _line()  # noqa: E702  # fmt: skip
    a >> b
    with pytest.raises(InvalidDataflow) as told:
        flow.build()
    assert [(fault.place.line, fault.condition, fault.task) for fault in told.value.faults] == [
        (made, "BAD_VALUE", None),
        (first, "UNKNOWN_TASK_TYPE", "raet"),
        (second, "BAD_VALUE", "filter"),
        (third, "NO_SUCH_PORT", "write_console"),
    ]
    assert {fault.place.file for fault in told.value.faults} == {__file__}


def test_faults_in_a_file_tell_its_name_and_line(tmp_path: Path) -> None:
    path = tmp_path / "flow.py"
    path.write_text(
        "from headgate import Flow\n\nflow = Flow('f')\nfor name in 'ab':\n    flow.source('raet', id=name)\n",
        encoding="utf-8",
    )
    with pytest.raises(InvalidDataflow) as told:
        read(path)
    assert [(str(fault.place), fault.task) for fault in told.value.faults] == [(f"{path}:5", "a"), (f"{path}:5", "b")]


def test_a_flow_without_a_name_is_called_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "city.py"
    path.write_text("from headgate import Flow\nflow = Flow()\nflow.source('rate')\n", encoding="utf-8")
    assert read(path).dataflow.name == "city"


def test_streams_run_between_tasks_of_one_flow() -> None:
    one, two = Flow("one"), Flow("two")
    a, b = one.source("rate"), two.sink("write_console")
    with pytest.raises(InputError, match="are of two flows") as told:
        a >> b
    assert told.value.condition == "TWO_FLOWS"


@pytest.mark.parametrize("other", ["text", 7, None, ["a"]])
def test_streams_run_between_tasks_and_nothing_else(other: FlowTask) -> None:
    flow = Flow("f")
    a = flow.source("rate")
    with pytest.raises(InputError, match="not to or from") as told:
        a >> other
    assert told.value.condition == "NOT_A_TASK"
    if isinstance(other, list):
        with pytest.raises(InputError, match="not to or from"):
            other >> a


def test_values_that_json_does_not_have_are_faults() -> None:
    flow = Flow("f")
    for number, value in enumerate([{1, 2}, object(), float("nan"), b"\xff", {1: 2}, 10**5000]):
        flow.source("opaque", id=f"t{number}", options={"x": value}, ports={"outputs": ["out"]})
    with pytest.raises(InvalidDataflow) as told:
        flow.build()
    assert {(fault.condition, fault.task) for fault in told.value.faults} == {("BAD_VALUE", f"t{n}") for n in range(6)}
