"""The micro-benchmarks on Spark: linear, diamond and star put out what their selectivities say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from examples.micro.make import documents
from examples.micro.messages import write_files

from headgate.documents import parse
from headgate.runtime.engine.engine import Engine

pytestmark = pytest.mark.spark

COPIES = {"linear": 1, "diamond": 4, "star_left": 8, "star_right": 16}
"""How many rows come out for an id: of the star's two sources each copies twice, and so does the centre."""


@pytest.mark.parametrize("count", [20, pytest.param(2_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_each_row_comes_out_as_often_as_it_should(engine: Engine, tmp_path: Path, count: int) -> None:
    write_files(tmp_path / "data", 1, count)
    flows = []
    for name, document in documents().items():
        text = json.dumps(document).replace("data/micro", str(tmp_path / "data"))
        found = json.loads(text.replace("operators.", "examples.micro.operators."))
        for task in found["tasks"]:
            if task["type"] == "write_files":
                task.update(type="write_memory", config={"name": Path(task["config"]["path"]).name})
        flows.append(parse(json.dumps({**found, "name": name}), "json").dataflow)
    engine.submit(*flows)
    engine.wait_until_idle()
    assert {flow.name: flow.reason for flow in engine.status()[0] if flow.state != "running"} == {}
    for name, copies in COPIES.items():
        rows = engine.memory.rows(name)
        assert Counter(row["id"] for row in rows) == dict.fromkeys(range(count), copies), name
        assert all(json.loads(row["message"])["id"] == row["id"] for row in rows), name
