"""After a crash loop the engine goes on without the newest dataflow, which is paused and not lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.documents import read
from headgate.runtime.engine.engine import Engine
from tests.cli.test_serving import write_flow
from tests.runtime.small import json_rows, numbered, put

pytestmark = pytest.mark.spark


def test_the_newest_is_paused_until_somebody_resumes_it(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 6))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        for name in ("old", "new"):
            engine.submit(read(write_flow(tmp_path, name, f"id >= 0 and '{name}' <> ''")).dataflow)
        engine.wait_until_idle()
    put(tmp_path / "in", "1", numbered(6, 6))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1, without_newest="Spark's process ended") as engine:
        engine.wait_until_idle()
        states = {flow.name: (flow.state, flow.reason) for flow in engine.status()[0]}
    assert states["old"] == ("running", "")
    assert states["new"][0] == "paused"
    assert "(last: Spark's process ended)" in states["new"][1]
    assert len(json_rows(tmp_path / "out_old")) == 12

    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        assert "newest" in engine.status()[0][1].reason, "still known after a restart"
        engine.resume("new")
        assert [(flow.state, flow.reason) for flow in engine.status()[0]] == [("running", "")] * 2
        put(tmp_path / "in", "2", numbered(12, 6))
        engine.wait_until_idle()
        engine.pause("new")
        assert engine.status()[0][1].reason == "", "now it is paused because somebody wants it"
    assert {row["id"] for row in json_rows(tmp_path / "out_new")} >= set(range(12, 18))
