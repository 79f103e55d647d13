"""After a crash loop the engine goes on without the newest dataflow, which is paused and not lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.documents import read
from headgate.errors import InputError
from headgate.model.status import EngineCrash
from headgate.runtime.engine import suspension
from headgate.runtime.engine.engine import Engine
from headgate.store.files import read_json, write_json
from tests.cli.test_serving import write_flow
from tests.runtime.small import json_rows, numbered, put, wait_for

pytestmark = pytest.mark.spark
CRASH = EngineCrash("Spark's process ended", is_loop=True)


def test_the_newest_is_paused_until_somebody_resumes_it(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 6))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        for name in ("old", "new"):
            engine.submit(read(write_flow(tmp_path, name, f"id >= 0 and '{name}' <> ''")).dataflow)
        engine.wait_until_idle()
    (tmp_path / "state/probation.json").unlink()  # they have been well for long
    put(tmp_path / "in", "1", numbered(6, 6))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1, crash=CRASH) as engine:
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


def test_what_is_new_when_spark_crashes_is_paused_at_once_and_what_was_being_tried_is_refused_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class JvmGone(BaseException):
        """The end of the process in the midst of a submission."""

    def end(*_: object) -> None:
        raise JvmGone

    crash = EngineCrash("Spark's process ended with status 52")
    flows = {name: read(write_flow(tmp_path, name, f"id >= 0 and '{name}' <> ''")).dataflow for name in ("old", "new")}
    tried = read(write_flow(tmp_path, "tried", "id > 1")).dataflow
    put(tmp_path / "in", "0", numbered(0, 6))
    state = tmp_path / "state"
    with Engine(state, spark=spark, trigger_s=0.1) as engine:
        engine.submit(flows["old"])
        engine.wait_until_idle()
        with monkeypatch.context() as patch:
            patch.setattr(suspension, "PROBATION_S", 0.0)
            wait_for(lambda: bool(engine.status()) and read_json(state / "probation.json")["new"] == {}, "a while")
        engine.submit(flows["new"])
        kept = (state / "probation.json").read_text()
        with monkeypatch.context() as patch:
            patch.setattr(engine.schemas, "check", end)
            patch.setattr(suspension.Suspensions, "_keep", _kept_while_trying)
            with pytest.raises(JvmGone):
                engine.submit(tried)
    assert json.loads(kept)["new"].keys() == {"new"}

    with Engine(state, spark=spark, trigger_s=0.1, crash=crash) as engine:
        assert {flow.name: flow.state for flow in engine.status()[0]} == {"old": "running", "new": "paused"}
        assert "while it was new (last: Spark's process ended with status 52)" in engine.status()[0][1].reason
        with pytest.raises(InputError, match="being checked when the engine crashed") as caught:
            engine.submit(tried)
        assert caught.value.condition == "CRASHED_THE_ENGINE"
        engine.submit(tried)  # somebody wants it tried again
        put(tmp_path / "in", "1", numbered(6, 6))
        engine.wait_until_idle()
    assert len(json_rows(tmp_path / "out_old")) == 12
    with Engine(state, spark=spark, trigger_s=0.1) as engine:
        assert {flow.state for flow in engine.status()[0]} == {"running", "paused"}


def _kept_while_trying(self: suspension.Suspensions, trying: Sequence[str] = ()) -> None:
    """The file stays as it is while something is tried, because the process ends then."""
    if trying:
        write_json(self._probation_file, {"new": self._new, "blamed": {}, "trying": list(trying)})
