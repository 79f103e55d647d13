"""Deployments on an engine: what is asked of it, and that no machine is left, with an engine that is a fake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headgate.adaptation.deploying.loop import run_to_target
from headgate.documents import parse
from headgate.errors import HeadgateError, InputError
from headgate.model.cluster.machine_observations import MachineObservations
from headgate.model.cluster.observation import (
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
    TaskObservation,
    TaskProfile,
)
from headgate.planning.placing.known_profiles import GivenProfile, known_profiles
from headgate.service.deploy import DeployRequest, deploying_of
from headgate.service.deploy_live import LiveWorld, cloud_of_engine
from headgate.sharing.signature import sign
from headgate.tasks.registry import default_registry

FLOW = """
name: line
tasks:
  - {id: in, type: rate}
  - {id: work, type: filter, config: {where: value > 0}, inputs: [in]}
  - {id: out, type: write_console, inputs: [work]}
"""


@dataclass
class FakeEngine:
    """An engine with one core a machine; ``work_s`` is what a row truly costs."""

    work_s: float = 0.001
    rate: float = 2_500.0
    boot_s: float = 5.0
    never_ready: bool = False
    now: float = 1_000.0
    machines_: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    partitions: dict[str, int] = field(default_factory=dict)
    recorded: list[Observation] = field(default_factory=list)
    waiting: float = 0.0

    def _key(self, request_id: str | None) -> None:
        assert request_id is not None
        assert request_id not in self.keys
        self.keys.append(request_id)

    def machines(self, *, gone: bool = False) -> Mapping[str, Any]:
        for each in self.machines_.values():
            if each["state"] == "starting" and not self.never_ready and self.now >= each["ready_at"]:
                each["state"] = "ready"
        shown = [dict(each) for each in self.machines_.values() if gone or each["state"] != "released"]
        one = {"name": "small", "cores": 1, "core_power": 1.0, "price_per_h": "0.10", "memory_bytes": 2**30}
        return {"provider": True, "machines": shown, "executors": [], "classes": [one]}

    def acquire(self, vm_class: str, *, request_id: str | None = None) -> Mapping[str, Any]:
        self._key(request_id)
        name = f"{vm_class}-{len(self.machines_) + 1}"
        self.machines_[name] = {
            "name": name, "vm_class": vm_class, "state": "starting", "ready_at": self.now + self.boot_s,
        }  # fmt: skip
        return self.machines_[name]

    def release(self, machine: str, *, request_id: str | None = None) -> Mapping[str, Any]:
        self._key(request_id)
        self.machines_[machine]["state"] = "released"
        return self.machines_[machine]

    def repartition(
        self, dataflow: str, task: str, partitions: int | None, *, request_id: str | None = None
    ) -> Mapping[str, Any]:
        self._key(request_id)
        if task == "in":
            raise InputError("NOT_PARTITIONED", "a source has the partitions that it reads")
        self.partitions[task] = partitions or 1
        return {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if not self.recorded or self.now >= self.recorded[-1].ended + 5.0:
            self.recorded.append(self._observation())

    def _observation(self) -> Observation:
        ready = [name for name, each in self.machines_.items() if each["state"] == "ready"]
        power = min(len(ready), self.partitions.get("work", 1))
        done = min(self.rate, power / self.work_s if power else 0.0)
        self.waiting += (self.rate - done) * 5.0
        flow = parse(FLOW, "yaml").dataflow
        named = sign(flow)
        profile = TaskProfile(1_000, self.work_s, self.work_s, 0.0, 0, None)
        busy = done * self.work_s / max(len(ready), 1)
        rows = round(done * 5.0)
        work = next(name for name in named if name == "work")
        source, sink = (next(name for name in named if name == wanted) for wanted in ("in", "out"))
        sojourn = Sojourn(0.2, 0.2, 0.3, 0.4)
        return Observation(
            self.now,
            5.0,
            (TaskObservation(named[work], "work", "filter", "filter", ("line",), None, rows, rows, profile=profile),),
            (SinkObservation(named[sink], "out", ("line",), rows, sojourn),),
            machines=MachineObservations(
                tuple(ready), vm_class=("small",) * len(ready), speed=(1.0,) * len(ready), busy=(busy,) * len(ready)
            ),
            sources=(SourceObservation(named[source], "in", ("line",), rows, self.rate * 5.0, self.waiting),),
        )


def _live(engine: FakeEngine, **limits: Any) -> tuple[Any, LiveWorld]:
    flow = parse(FLOW, "yaml").dataflow
    given = {"work": GivenProfile({"cpu_s": 0.0005})}
    known = known_profiles(flow, default_registry(), None, given)
    request = DeployRequest((str(engine.rate),), 2.0, fill=1.0, **limits)
    deploying = deploying_of(request, flow, known, Path(), cloud_of_engine(engine.machines(), []))
    world = LiveWorld(
        engine,
        flow,
        sign(flow),
        lambda since: [each for each in engine.recorded if each.ended > since],
        "deploy/1",
        lambda: engine.now,
        engine.sleep,
    )
    return deploying, world


def test_machines_and_partitions_follow_the_plan_until_the_target_holds() -> None:
    engine = FakeEngine()
    deploying, world = _live(engine)
    outcome = run_to_target(deploying, world)
    assert outcome.reached, outcome.sentence
    assert len(outcome.attempts) >= 2
    assert outcome.plan is not None
    ready = [each for each in engine.machines()["machines"] if each["state"] == "ready"]
    assert len(ready) == outcome.plan.placement.machines
    assert engine.partitions["work"] >= 3
    assert world.not_enforced["instances of in"] == "a source has the partitions that it reads"
    assert "placement" in world.not_enforced
    world.settle(outcome.plan)
    assert len([each for each in engine.machines()["machines"] if each["state"] == "ready"]) == len(ready)


def test_when_nothing_is_to_stay_no_machine_is_left_running() -> None:
    engine = FakeEngine()
    deploying, world = _live(engine)
    run_to_target(deploying, world)
    world.settle(None)
    assert engine.machines()["machines"] == []


def test_a_machine_that_never_comes_is_a_sentence_and_is_released() -> None:
    engine = FakeEngine(never_ready=True)
    deploying, world = _live(engine)
    with pytest.raises(HeadgateError, match="is not ready after 180 s"):
        run_to_target(deploying, world)
    world.settle(None)
    assert engine.machines()["machines"] == []


def test_machines_of_others_stay() -> None:
    engine = FakeEngine()
    for _ in range(8):
        engine.acquire("small", request_id=f"other/{_}")
    engine.now += 60
    deploying, world = _live(engine)
    outcome = run_to_target(deploying, world)
    assert outcome.reached
    world.settle(None)
    assert len(engine.machines()["machines"]) == 8
