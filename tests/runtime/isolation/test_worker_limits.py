"""Python workers: they have nothing of the engine's environment, and one that takes too much harms itself only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headgate.runtime.engine.engine import Engine
from headgate.runtime.spark_internals.worker_limits import MEMORY_BYTES, worker_environment
from tests.runtime.small import files, flow, memory, numbered, put, wait_for


def test_what_is_passed_on() -> None:
    environment = {"PATH": "/bin", "LC_ALL": "C", "SPARK_HOME": "/s", "AWS_KEY": "k", "PGPASSWORD": "p", "CITY_A": "1"}
    assert worker_environment(environment).keys() == {"PATH", "LC_ALL", "SPARK_HOME"}
    assert worker_environment(environment, ["CITY_*"]).keys() == {"PATH", "LC_ALL", "SPARK_HOME", "CITY_A"}


@pytest.mark.spark
def test_a_function_sees_little_and_one_that_takes_too_much_fails_alone(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 6))
    sees = {"function": "tests.runtime.functions.look_around", "columns": "id long, seen string"}
    look = {"type": "python", "config": sees}
    take = {"type": "python", "config": {"function": "tests.runtime.functions.take_memory"}}
    engine.submit(
        flow("good", files(tmp_path / "in"), memory("good")),
        flow("looks", files(tmp_path / "in"), look, memory("looks")),
        flow("takes", files(tmp_path / "in"), take, memory("takes")),
    )
    wait_for(lambda: "MemoryError" in {flow.name: flow.reason for flow in engine.status()[0]}["takes"], "a reason")
    engine.wait_until_idle()
    assert sorted(row["id"] for row in engine.memory.rows("good")) == list(range(6))
    assert engine.memory.rows("takes") == []
    seen = json.loads(engine.memory.rows("looks")[0]["seen"])
    assert seen["memory"] == MEMORY_BYTES
    hidden = {name for name in os.environ if name.startswith("PYTEST_")}
    assert hidden
    assert not hidden & set(seen["names"])
    assert not any(name in seen["began_with"] for name in hidden)
