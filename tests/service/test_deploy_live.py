"""Deployments on an engine: what is asked of it, and that no machine is left, with an engine that is a fake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from headgate.adaptation.deploying.analysing import Cause
from headgate.adaptation.deploying.loop import run_to_target
from headgate.documents import parse
from headgate.errors import HeadgateError, InputError
from headgate.model.cluster.machine_observations import MachineObservations
from headgate.model.cluster.observation import (
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
)
from headgate.planning.placing.known_profiles import GivenProfile, known_profiles
from headgate.service.deploy import DeployRequest, deploying_of, fused_deploying
from headgate.service.deploy_live import LiveWorld
from headgate.service.deploy_readings import cloud_of_engine, fused_groups
from headgate.sharing.signature import sign
from headgate.tasks.registry import default_registry

FLOW = """
name: line
tasks:
  - {id: in, type: read_files, config: {path: in, columns: value bigint}}
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
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    placeable: bool = True
    dies: str = ""
    """A machine that dies as soon as something is placed on it."""

    most: int = 100
    misplaced: int = 0
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
        listed = [each | {"executors": int(each["state"] == "ready")} for each in shown]
        return {"provider": True, "machines": listed, "executors": [], "classes": [one]}

    def acquire(self, vm_class: str, *, request_id: str | None = None) -> Mapping[str, Any]:
        self._key(request_id)
        if sum(each["state"] != "released" for each in self.machines_.values()) >= self.most:
            raise InputError("NO_CAPACITY", f"the cluster has no more machines: {self.most} are its limit")
        name = f"{vm_class}-{len(self.machines_) + 1}"
        self.machines_[name] = {
            "name": name, "vm_class": vm_class, "state": "starting", "ready_at": self.now + self.boot_s,
        }  # fmt: skip
        return self.machines_[name]

    def release(self, machine: str, *, request_id: str | None = None) -> Mapping[str, Any]:
        self._key(request_id)
        self.machines_[machine]["state"] = "released"
        return self.machines_[machine]

    def place(
        self, dataflow: str, task: str, machines: Sequence[str] | None, *, request_id: str | None = None
    ) -> Mapping[str, Any]:
        self._key(request_id)
        if not self.placeable:
            raise InputError("NOT_PLACEABLE", f"task '{task}' of '{dataflow}' cannot be placed: Spark reads it")
        ready = {each["name"] for each in self.machines()["machines"] if each["state"] == "ready"}
        assert machines is None or ready >= set(machines), "a place that does not take work"
        self.places.pop(task, None)
        if machines is not None:
            self.places[task] = tuple(machines)
        if self.dies in (machines or ()):
            self.machines_[self.dies]["state"] = "lost"
            self.dies = ""
        return {}

    def limit(self, dataflow: str, task: str, rows: int | None, *, request_id: str | None = None) -> Mapping[str, Any]:
        self._key(request_id)
        self.limits = {} if rows is None else {task: rows}
        return {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if not self.recorded or self.now >= self.recorded[-1].ended + 5.0:
            self.recorded.append(self._observation())

    def _observation(self) -> Observation:
        ready = [name for name, each in self.machines_.items() if each["state"] == "ready"]
        on = self.places.get("in", ready[:1])
        power = len({name for name in on if name in ready})
        done = min(self.rate, power / self.work_s if power else 0.0)
        self.waiting += (self.rate - done) * 5.0
        flow = parse(FLOW, "yaml").dataflow
        named = sign(flow)
        busy = [done * self.work_s / max(power, 1) if name in on else 0.0 for name in ready]
        rows = round(done * 5.0)
        source, work, sink = (next(name for name in named if name == wanted) for wanted in ("in", "work", "out"))
        tasks = tuple(named[each] for each in (source, work, sink))
        fragment = FragmentObservation("f", "source", tasks, 5, rows, 0, 5.0, 0.1, 0.1, 4.7, 0.1)
        fragment = replace(fragment, work_s=rows * self.work_s, parts=len(on), misplaced=self.misplaced)
        sojourn = Sojourn(0.2, 0.2, 0.3, 0.4)
        return Observation(
            self.now,
            5.0,
            (),
            (SinkObservation(named[sink], "out", ("line",), rows, sojourn),),
            (fragment,),
            MachineObservations(
                tuple(ready), vm_class=("small",) * len(ready), speed=(1.0,) * len(ready), busy=tuple(busy)
            ),
            (SourceObservation(named[source], "in", ("line",), rows, self.rate * 5.0, self.waiting),),
        )


def _live(engine: FakeEngine, **limits: Any) -> tuple[Any, LiveWorld]:
    flow = parse(FLOW, "yaml").dataflow
    given = {"work": GivenProfile({"cpu_s": 0.0005})}
    known = known_profiles(flow, default_registry(), None, given)
    request = DeployRequest((str(engine.rate),), 2.0, fill=1.0, **limits)
    groups = fused_groups(engine._observation(), sign(flow))
    assert groups == {"in": ("in", "work", "out")}
    cloud = cloud_of_engine(engine.machines(), [])
    deploying = fused_deploying(deploying_of(request, flow, known, Path(), cloud), flow, groups, every_s=1.0)
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
    assert len(set(engine.places["in"])) == len(ready) >= 3
    sites = outcome.plan.placement.sites
    assert sorted(Counter(engine.places["in"]).values()) == sorted(site.instances["in"] for site in sites)
    assert engine.limits["in"] >= engine.rate
    assert not world.not_enforced
    world.settle(outcome.plan)
    assert len([each for each in engine.machines()["machines"] if each["state"] == "ready"]) == len(ready)
    assert engine.limits == {}


def test_when_nothing_is_to_stay_no_machine_is_left_running() -> None:
    engine = FakeEngine()
    deploying, world = _live(engine)
    run_to_target(deploying, world)
    world.settle(None)
    assert engine.machines()["machines"] == []
    assert engine.places == {}


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


def test_a_machine_that_dies_is_a_verdict_and_another_takes_its_place() -> None:
    engine = FakeEngine(dies="small-2")
    deploying, world = _live(engine)
    outcome = run_to_target(deploying, world)
    assert outcome.reached, outcome.sentence
    lost = [each.verdict for each in outcome.attempts if each.verdict.cause is Cause.MACHINE_LOST]
    assert [verdict.sentence for verdict in lost] == [
        f"{lost[0].bottleneck} died while it was measured; nothing follows from this run"
    ]
    assert "small-2" not in engine.places["in"]
    world.settle(None)
    assert [each for each in engine.machines()["machines"] if each["state"] == "ready"] == []


def test_a_provider_that_refuses_is_its_sentence_and_nothing_is_left_running() -> None:
    engine = FakeEngine(most=2)
    deploying, world = _live(engine)
    with pytest.raises(InputError, match="has no more machines: 2 are its limit"):
        run_to_target(deploying, world)
    world.settle(None)
    assert engine.machines()["machines"] == []
    assert (engine.places, engine.limits) == ({}, {})


def test_what_is_not_placed_is_said() -> None:
    engine = FakeEngine(placeable=False)
    deploying, world = _live(engine)
    world.run(deploying.next_plan())
    assert world.not_enforced == {"places of in": "task 'in' of 'line' cannot be placed: Spark reads it"}
    engine = FakeEngine(misplaced=2)
    deploying, world = _live(engine)
    world.run(deploying.next_plan())
    assert world.not_enforced == {"places": "20 partitions ran on other machines than the plan's"}


def test_a_target_that_nobody_can_meet_is_a_sentence() -> None:
    engine = FakeEngine()
    deploying, world = _live(engine, machines_max=2)
    outcome = run_to_target(deploying, world)
    assert not outcome.reached
    assert "2 machines do not hold all instances" in outcome.sentence
    world.settle(None)
    assert engine.machines()["machines"] == []
