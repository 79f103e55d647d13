"""A load comes and goes over an engine on real Spark workers: it decides by itself, also when it is killed in between.

What is judged is what the world outside sees: the rows in the sink, each with the alternate that has made it, and the
provider's record of machines.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from headgate.api.client import EngineClient
from headgate.errors import HeadgateError
from headgate.machines.local import LocalProvider
from headgate.machines.provider import MachineState, machine_class
from tests.processes import PATIENCE_S, end, start
from tests.runtime.small import json_rows, put, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_spark]

SOLO = machine_class("solo", 1, 2**30, Decimal("0.05"))
FUNCTIONS = """


def work(row, pause, way):
    time.sleep(pause)
    return {"id": row["id"], "way": way}
"""
FLOW = """
name: town
tasks:
- {id: read, type: read_files, config: {path: in, columns: "id long"}}
- {id: spread, type: derive, config: {columns: {k: "id % 7"}}, inputs: [read]}
- id: work
  inputs: [spread]
  alternates:
  - {name: best, type: python, value: 1.0, cost_s: 0.02,
     config: {function: pausing.work, columns: "id long, way string", options: {pause: 0.02, way: best}}}
  - {name: quick, type: python, value: 0.7, cost_s: 0.004,
     config: {function: pausing.work, columns: "id long, way string", options: {pause: 0.004, way: quick}}}
- {id: out, type: write_files, config: {path: out}, inputs: [work]}
"""
SETTINGS = """
[control]
mode = "auto"
decide_every = "5s"
window = "15s"
cooldown = "10s"
shrink_after = "20s"
floor = "30s"
longest_epoch = "10s"
max_machines = 2
"""
PATIENT_S = 2 * PATIENCE_S


class Feeder:
    """Brings rows at a rate that a test changes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rate, self.rows = folder, 4, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._bring, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _bring(self) -> None:
        for number in count():
            put(self.folder, f"{number:06d}", [{"id": self.rows + row} for row in range(self.rate)])
            self.rows += self.rate
            if self._ended.wait(1.0):
                return


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LocalProvider]:
    made = LocalProvider.up(tmp_path / "cluster", classes=[SOLO])
    made.acquire("solo")
    try:
        wait_for(lambda: made.list()[0].state is MachineState.READY, "the first machine", PATIENCE_S)
        yield made
    finally:
        made.down()


def ask(state: Path, what: str, *arguments: Any) -> dict[str, Any]:
    with EngineClient(state, patience_s=PATIENCE_S) as client:
        answer: dict[str, Any] = getattr(client, what)(*arguments)
        return answer


def ways(folder: Path) -> Counter[str]:
    return Counter(row["way"] for row in json_rows(folder / "out")) if (folder / "out").exists() else Counter()


@pytest.mark.timeout(3_000)
def test_load_comes_and_goes_and_the_engine_is_killed_as_a_machine_starts(
    tmp_path: Path, provider: LocalProvider
) -> None:
    (tmp_path / "pausing.py").write_text(FUNCTIONS, encoding="utf-8")
    (tmp_path / "flow.yaml").write_text(FLOW, encoding="utf-8")
    (tmp_path / "headgate.toml").write_text(SETTINGS, encoding="utf-8")
    state, feeder = tmp_path / ".headgate", Feeder(tmp_path / "in")
    command = [sys.executable, "-m", "headgate", "run", "flow.yaml", "--cluster", "cluster"]
    run = start([*command, "--conf", "spark.executor.memory=512m"], tmp_path)

    def text() -> str:
        assert run.poll() is None, (tmp_path / "log").read_text(errors="replace")
        with suppress(HeadgateError):
            return json.dumps(ask(state, "decisions")["decisions"], indent=1)
        return ""

    def bought() -> list[Any]:
        text()
        return [machine for machine in provider.list(gone=True) if machine.key is not None]

    try:
        wait_for(lambda: (state / "lock").exists(), "the supervisor", PATIENCE_S)
        wait_for(lambda: ways(tmp_path)["best"] > 20, "rows in the best way", PATIENT_S)
        ask(state, "repartition", "town", "spread", 4)
        feeder.rate = 100
        wait_for(lambda: bool(bought()), "a machine to be asked for", PATIENT_S)
        os.kill(ask(state, "status")["process"], signal.SIGKILL)
        wait_for(lambda: ways(tmp_path)["quick"] > 0, "rows in the quick way", PATIENT_S)
        wait_for(lambda: any(each.ready_at is not None for each in bought()), "the machine to be ready", PATIENT_S)
        feeder.rate = 4
        wait_for(lambda: any(each.gone_at is not None for each in bought()), "a machine to go", PATIENT_S)
        before = ways(tmp_path)["best"]
        wait_for(lambda: ways(tmp_path)["best"] > before, "rows in the best way again", PATIENT_S)
        decided = ask(state, "decisions")["decisions"]
        feeder.stop()
        wait_for(lambda: sum(ways(tmp_path).values()) >= feeder.rows, "all rows", PATIENT_S)
        run.send_signal(signal.SIGTERM)
        run.wait(PATIENCE_S)
    finally:
        feeder.stop()
        end(run)
    assert sorted(row["id"] for row in json_rows(tmp_path / "out")) == list(range(feeder.rows))
    keys = [machine.key for machine in provider.list(gone=True) if machine.key is not None]
    assert len(keys) == len(set(keys))
    assert all(each["outcome"] != "under way" for each in decided[:-1])
    assert all(each["sentences"] for each in decided)
