"""Places are part of the plan: durable, refused where they make no sense, and on one machine a number of parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.runtime.engine.engine import Engine
from tests.runtime.small import files, flow, memory, numbered, put

pytestmark = pytest.mark.spark


def test_on_one_machine_they_are_so_many_parts_also_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 5))
    made = flow("f", files(tmp_path / "in"), memory("out"))
    source = made.tasks[0].id
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.submit(made)
        host = engine.scaling.executors.list()[0].host
        observer = engine.observer()
        engine.place("f", source, [host] * 3)
        put(tmp_path / "in", "1", numbered(5, 90))
        engine.wait_until_idle()
        assert {fragment.parts for fragment in observer.observe().fragments} == {3}
        assert sorted(row["id"] for row in engine.memory.rows("out")) == list(range(95))
        places = dict(engine.snapshot.places)
        assert list(places.values()) == [(host,) * 3]
        for task, machines, said in (
            (source, ["elsewhere"], "no machine 'elsewhere' is known"),
            (source, [], f"no machine is given for task '{source}' of 'f'"),
            ("t1", [host], "task 't1' of 'f' cannot be placed: it runs where its rows are; place the source"),
        ):
            with pytest.raises(InputError, match=said):
                engine.place("f", task, machines)
        assert dict(engine.snapshot.places) == places
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        assert dict(engine.snapshot.places) == places
        observer = engine.observer()
        put(tmp_path / "in", "2", numbered(95, 90))
        engine.wait_until_idle()
        assert {fragment.parts for fragment in observer.observe().fragments} == {3}
        engine.place("f", source, None)
        assert not engine.snapshot.places
        put(tmp_path / "in", "3", numbered(185, 5))
        engine.wait_until_idle()
        assert {fragment.parts for fragment in observer.observe().fragments} == {1}


def test_a_source_that_spark_reads_by_itself_cannot_be_placed(engine: Engine) -> None:
    engine.submit(flow("f", {"id": "clock", "type": "rate"}, memory("out")))
    host = engine.scaling.executors.list()[0].host
    with pytest.raises(InputError, match="'clock' of 'f' cannot be placed: Spark reads it by itself; sources"):
        engine.place("f", "clock", [host])
