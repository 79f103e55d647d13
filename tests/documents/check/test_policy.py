"""What becomes of rows for which a task raises, and how long it may take: said in every format, checked, and shared."""

from __future__ import annotations

import pytest

from headgate.documents import parse, write
from headgate.documents.builder import Flow
from headgate.errors import InvalidDataflow
from headgate.model.names import TaskId
from headgate.model.on_error import OnError
from headgate.sharing.merge import merge
from headgate.sharing.signature import sign

TEXT = """
name: {name}
tasks:
- {{id: a, type: rate}}
- {{id: b, type: {type}, config: {config}, inputs: [a]{policy}}}
- {{id: c, type: write_console, inputs: [b]}}
"""


def text(policy: str, type: str = "filter", config: str = "{where: value > 1}", name: str = "f") -> str:
    return TEXT.format(name=name, policy=f", {policy}" if policy else "", type=type, config=config)


@pytest.mark.parametrize("form", ["yaml", "json", "xml", "python"])
def test_every_format_carries_policy_and_budget(form: str) -> None:
    dataflow = parse(text("on_error: dead_letter, time_budget: 1.5s"), "yaml").dataflow
    assert (dataflow.tasks[1].on_error, dataflow.tasks[1].time_budget_s) == (OnError.DEAD_LETTER, 1.5)
    written = write(dataflow, form)
    assert "dead_letter" in written
    assert "1500ms" in written
    assert parse(written, form).dataflow == dataflow


def test_the_builder_says_it_too() -> None:
    flow = Flow("f")
    flow.source("rate") >> flow.task("filter", id="b", where="value > 1", on_error="skip", time_budget="2min")
    assert (flow.build().tasks[1].on_error, flow.build().tasks[1].time_budget_s) == (OnError.SKIP, 120.0)


@pytest.mark.parametrize("budget", ["0s", "soon", "0.1ms", "2d", "-1s"])
def test_a_budget_is_a_span(budget: str) -> None:
    with pytest.raises(InvalidDataflow, match=r"time_budget: .* is not a time budget"):
        parse(text(f"time_budget: {budget}"), "yaml")


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("sql", '{query: "select * from `in`"}'),
        ("window", "{time: timestamp, size: 1s, columns: {n: count(*)}}"),
        ("write_console", "{}"),
    ],
)
def test_a_task_that_treats_no_single_rows_can_only_fail(kind: str, config: str) -> None:
    lines = text("on_error: skip", kind, config).strip().splitlines()
    with pytest.raises(InvalidDataflow, match=f"a task of type '{kind}' does not treat rows one by one"):
        parse("\n".join(lines[:-1]), "yaml")


def test_nobody_gets_another_ones_policy() -> None:
    ways = ["", "on_error: fail", "on_error: skip", "on_error: dead_letter", "time_budget: 1s", "time_budget: 1000ms"]
    flows = [parse(text(way, name=f"f{n}"), "yaml").dataflow for n, way in enumerate(ways)]
    signatures = [sign(flow)[TaskId("b")] for flow in flows]
    assert signatures[0] == signatures[1]
    assert signatures[4] == signatures[5]
    assert len(set(signatures)) == 4
    merged = merge(flows)
    assert [len(merged.users[task.id]) for task in merged.graph.tasks if task.type == "filter"] == [2, 1, 1, 2]
