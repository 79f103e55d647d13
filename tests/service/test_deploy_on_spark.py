"""Deployments on real Spark workers: what ran where, from Spark's own events, is what the plan says."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.api.client import EngineClient
from headgate.errors import HeadgateError, InputError
from headgate.machines.local import LocalProvider
from headgate.machines.processes import marked
from headgate.machines.provider import machine_class
from tests.processes import PATIENCE_S, end, start
from tests.runtime.place import SMALL_EXECUTORS

pytestmark = [pytest.mark.spark, pytest.mark.own_spark]
TINY = machine_class("tiny", 1, 900 * 2**20, Decimal("0.1"))
FLOW = """
name: doubles
tasks:
- {{id: read, type: read_files, config: {{path: {folder}/in, columns: id bigint}}}}
- {{id: double, type: derive, config: {{columns: {{twice: id * 2}}}}, inputs: [read]}}
- {{id: out, type: write_files, config: {{path: {folder}/out}}, inputs: [double]}}
"""


@dataclass
class Place:
    """A cluster, an engine on it that runs one dataflow, and the files that it reads and writes."""

    folder: Path
    provider: LocalProvider
    client: EngineClient
    fed: int = 0

    def feed(self, count: int) -> None:
        hidden = self.folder / "in" / ".hidden"
        hidden.write_text("".join(json.dumps({"id": self.fed + n}) + "\n" for n in range(count)))
        hidden.rename(self.folder / "in" / f"{self.fed:06d}.json")
        self.fed += count

    def rows(self) -> Counter[tuple[int, int]]:
        lines = (line for file in (self.folder / "out").rglob("*.json") for line in file.read_text().splitlines())
        return Counter((row["id"], row["twice"]) for row in map(json.loads, lines))

    def fed_through(self, count: int) -> None:
        self.feed(count)
        wait_for(lambda: sum(self.rows().values()) >= self.fed, "the rows", self.folder)

    def ran(self) -> dict[int, dict[int, str]]:
        """The host of each task, by stage, from Spark's event log."""
        stages: dict[int, dict[int, str]] = defaultdict(dict)
        for file in (self.folder / "events").iterdir():
            for line in file.read_text().splitlines():
                event: dict[str, Any] = json.loads(line) if line.endswith("}") else {"Event": ""}
                if event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
                    stages[event["Stage ID"]][event["Task Info"]["Index"]] = event["Task Info"]["Host"]
        return stages

    def observed(self, since: float) -> list[dict[str, Any]]:
        seen = self.client.observations(since, 100)["observations"]
        return [fragment for each in seen for fragment in each["fragments"]]


def wait_for(reached: Callable[[], bool], what: str, folder: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < until, f"{what} did not come\n{(folder / 'log').read_text()[-3000:]}"
        time.sleep(0.1)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    for name in ("in", "events"):
        (tmp_path / name).mkdir()
    (tmp_path / "flow.yaml").write_text(FLOW.format(folder=tmp_path))
    provider = LocalProvider.up(tmp_path / "cluster", classes=[TINY], usual=())
    process = None
    try:
        for _ in range(2):
            provider.acquire("tiny")
        events = {"enabled": "true", "dir": str(tmp_path / "events"), "rolling.enabled": "false", "compress": "false"}
        conf = {**SMALL_EXECUTORS, **{f"spark.eventLog.{name}": value for name, value in events.items()}}
        command = [sys.executable, "-m", "headgate", "run", "flow.yaml", "--serve", "--state", "state"]
        command += ["--cluster", "cluster", "--trigger", "200ms"]
        command += [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        process = start(command, tmp_path)
        wait_for((tmp_path / "state" / "control.sock").exists, "the engine", tmp_path)
        with EngineClient(tmp_path / "state") as client:
            wait_for(lambda: bool(client.status()["dataflows"]), "the dataflow", tmp_path)
            wait_for(lambda: len(client.machines()["executors"]) == 2, "the executors", tmp_path)
            yield Place(tmp_path, provider, client)
    finally:
        if process is not None:
            end(process)
        with suppress(HeadgateError):
            provider.down()


def test_partitions_run_where_they_are_placed_and_elsewhere_when_a_machine_dies(place: Place) -> None:
    hosts = {machine.name: machine.host for machine in place.provider.list()}
    place.fed_through(50)
    before = max(place.ran(), default=-1)
    plan = ["tiny-1", "tiny-1", "tiny-2"]
    place.client.place("doubles", "read", plan)
    began = time.time()
    for _ in range(5):
        place.fed_through(60)
    wait_for(lambda: len([stage for stage in place.ran() if stage > before]) >= 5, "Spark's events", place.folder)
    placed = {number: tasks for number, tasks in place.ran().items() if number > before}
    expected = {index: hosts[name] for index, name in enumerate(plan)}
    whole = [tasks for tasks in placed.values() if len(tasks) == len(plan)]
    assert len(whole) >= 5
    assert whole == [expected] * len(whole)

    def misplaced(since: float) -> set[int]:
        return {each["misplaced"] for each in place.observed(since) if each.get("misplaced") is not None}

    wait_for(lambda: bool(misplaced(began)), "what was measured", place.folder)
    assert misplaced(began) == {0}

    with pytest.raises(InputError, match=r"no machine 'tiny-7' is known; did you mean"):
        place.client.place("doubles", "read", ["tiny-7"])
    with pytest.raises(InputError, match="task 'double' of 'doubles' cannot be placed: it runs where its rows are"):
        place.client.place("doubles", "double", ["tiny-1"])

    # A machine that dies takes nothing with it: its partition runs on the other one, and is counted.
    place.feed(60)
    for pid in marked(f"{place.provider.folder}/tiny-2"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    died = time.time()
    place.fed_through(60)
    place.fed_through(60)
    assert place.rows() == Counter({(number, 2 * number): 1 for number in range(place.fed)})
    wait_for(lambda: max(misplaced(died), default=0) > 0, "what was misplaced", place.folder)
    place.client.place("doubles", "read", None)
    place.fed_through(60)
