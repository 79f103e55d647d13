"""Deployments on a running engine: machines from its provider, partitions of tasks, and what it measures.

What an engine does of a plan: it acquires the plan's machines and sets the partitions of tasks. On which machine an
instance runs it leaves to Spark, which shares the cores of all machines among all fragments.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from headgate.adaptation.deploying.readings import OperatorReading, Readings
from headgate.errors import HeadgateError, InputError
from headgate.machines.provider import LOOPBACK_MBIT_PER_S
from headgate.model.cluster.observation import Observation
from headgate.model.cluster.vm_class import PER_SECOND, Cloud, VmClass
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature, TaskId
from headgate.planning.placing.deployment_plan import DeploymentPlan

__all__ = ["EngineDoor", "LiveWorld", "cloud_of_engine"]

READY_WITHIN_S, STABLE_WITHIN_S = 180.0, 300.0
SETTLE_S = 20.0
LOOK_EVERY_S = 1.0
READINGS = 6
STEADY = 0.15
"""Throughput is stable when the readings are within this share of their median."""


class EngineDoor(Protocol):
    """The requests that a deployment makes of an engine."""

    def machines(self, *, gone: bool = False) -> Mapping[str, Any]: ...
    def acquire(self, vm_class: str, *, request_id: str | None = None) -> Mapping[str, Any]: ...
    def release(self, machine: str, *, request_id: str | None = None) -> Mapping[str, Any]: ...
    def repartition(
        self, dataflow: str, task: str, partitions: int | None, *, request_id: str | None = None
    ) -> Mapping[str, Any]: ...


def cloud_of_engine(facts: Mapping[str, Any], observations: Sequence[Observation]) -> Cloud:
    """The classes that an engine can acquire; without a provider, the machine that it runs on."""
    if facts["classes"]:
        classes = tuple(
            VmClass(
                each["name"],
                each["cores"],
                each["core_power"],
                LOOPBACK_MBIT_PER_S,
                Decimal(each["price_per_h"]),
                memory_bytes=each["memory_bytes"],
            )
            for each in facts["classes"]
        )
        return Cloud("engine", classes, PER_SECOND, latency_s=0.0)
    machines = list(observations[-1].machines) if observations else []
    cores = sum(each.cores for each in machines) or sum(each["cores"] for each in facts["executors"]) or 1
    speeds = [each.speed for each in machines if each.speed]
    price = next((each.price_per_h for each in machines if each.price_per_h), Decimal("0.10"))
    power = statistics.mean(speeds) if speeds else 1.0
    return Cloud("engine", (VmClass("here", cores, power, LOOPBACK_MBIT_PER_S, price),), PER_SECOND, latency_s=0.0)


@dataclass(slots=True)
class LiveWorld:
    """Runs plans on an engine. What it acquires it releases again when a later plan, or nobody, needs it."""

    door: EngineDoor
    dataflow: Dataflow
    signatures: Mapping[TaskId, Signature]
    observed: Callable[[float], Iterable[Observation]]
    """Observations that ended after a moment."""

    key: str
    """Begins the keys of all requests, so that none is carried out twice."""

    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    step: Callable[[str], None] = lambda _: None
    not_enforced: dict[str, str] = field(default_factory=dict)
    """What the engine does not do of plans, each with its reason."""

    _acquired: list[str] = field(default_factory=list)
    _requests: int = 0

    def run(self, plan: DeploymentPlan) -> Readings:
        sites = self._machines(plan)
        self._partitions(plan)
        seen = self._stable()
        return self._readings(plan, seen, sites)

    def settle(self, plan: DeploymentPlan | None) -> None:
        """Leave the machines and partitions of a plan running; of none, release all that was acquired."""
        if plan is not None:
            self._machines(plan)
            self._partitions(plan)
            return
        for name in list(self._acquired):
            self._release(name)

    def _machines(self, plan: DeploymentPlan) -> dict[str, str]:
        """Acquire what the plan lacks and wait for it, release what it does not need; machines by site."""
        facts = self.door.machines()
        if not facts["provider"]:
            self.not_enforced["machines"] = "this engine cannot acquire machines; run it with --cluster"
            return {}
        there = {each["name"]: each for each in facts["machines"] if each["state"] in ("starting", "ready")}
        lacking = Counter(site.vm_class for site in plan.placement.sites)
        lacking.subtract(Counter(each["vm_class"] for each in there.values()))
        for kind, count in lacking.items():
            for _ in range(count):
                self._requests += 1
                self.step(f"acquiring a machine of class {kind}")
                answer = self.door.acquire(kind, request_id=f"{self.key}/{self._requests}")
                self._acquired.append(answer["name"])
        self._wait_until_ready()
        for name in list(self._acquired):
            kind = there[name]["vm_class"] if name in there else ""
            if lacking[kind] < 0:
                lacking[kind] += 1
                self._release(name)
        self.not_enforced["placement"] = "Spark shares the cores of all machines; instances are placed on none of them"
        return self._by_site(plan)

    def _wait_until_ready(self) -> None:
        until = self.clock() + READY_WITHIN_S
        while True:
            machines = {each["name"]: each["state"] for each in self.door.machines(gone=True)["machines"]}
            late = [name for name in self._acquired if machines.get(name) == "starting"]
            if not late:
                self._acquired = [name for name in self._acquired if machines.get(name) in ("ready", "draining")]
                return
            if self.clock() >= until:
                message = f"machine {late[0]} is not ready after {READY_WITHIN_S:.0f} s"
                raise HeadgateError("NO_MACHINES", f"{message}; look at the provider, and try again")
            self.sleep(LOOK_EVERY_S)

    def _release(self, name: str) -> None:
        self.step(f"releasing {name}")
        self._requests += 1
        self.door.release(name, request_id=f"{self.key}/{self._requests}")
        self._acquired.remove(name)

    def _by_site(self, plan: DeploymentPlan) -> dict[str, str]:
        """The machine that stands for each site: of its class, in order."""
        left = [each for each in self.door.machines()["machines"] if each["state"] == "ready"]
        chosen = {}
        for site in plan.placement.sites:
            match = next((each for each in left if each["vm_class"] == site.vm_class), None)
            if match is not None:
                left.remove(match)
                chosen[site.name] = str(match["name"])
        return chosen

    def _partitions(self, plan: DeploymentPlan) -> None:
        for each in plan.parallelism:
            try:
                self._requests += 1
                request = f"{self.key}/{self._requests}"
                self.door.repartition(self.dataflow.name, each.task, each.instances, request_id=request)
                self.not_enforced.pop(f"instances of {each.task}", None)
            except InputError as error:
                self.not_enforced[f"instances of {each.task}"] = error.message

    def _stable(self) -> list[Observation]:
        """The last readings, once throughput is steady, or after a while as they are."""
        began = self.clock()
        until = began + STABLE_WITHIN_S
        self.step("waiting until it is stable")
        while True:
            seen = [each for each in self.observed(began + SETTLE_S) if each.seconds > 0][-READINGS:]
            if len(seen) == READINGS and (_is_steady(self._taken(seen)) or self.clock() >= until):
                return seen
            if self.clock() >= until + READINGS * SETTLE_S:
                message = f"the engine has recorded {len(seen)} observations in {STABLE_WITHIN_S:.0f} s"
                raise HeadgateError("NOT_STABLE", f"{message}, too few to judge a deployment; is it running?")
            self.sleep(LOOK_EVERY_S)

    def _taken(self, seen: Sequence[Observation]) -> list[float]:
        """Rows per second that were taken from the dataflow's sources, and finished."""
        mine = set(self.signatures.values())
        return [sum(one.rows_taken for one in each.sources if one.task in mine) / each.seconds for each in seen]

    def _readings(self, plan: DeploymentPlan, seen: Sequence[Observation], sites: Mapping[str, str]) -> Readings:
        mine, seconds = set(self.signatures.values()), sum(each.seconds for each in seen)
        sources = [[one for one in each.sources if one.task in mine] for each in seen]
        taken = self._taken(seen)
        arrived = sum(
            one.rows_taken if one.rows_arrived is None else one.rows_arrived for each in sources for one in each
        )
        waiting = [sum(one.rows_waiting or 0.0 for one in each) for each in sources]
        sinks = [[one.sojourn.mean_s for one in each.sinks if one.task in mine and one.sojourn] for each in seen]
        latency = [max(each) for each in sinks if each] or [float("inf")]
        machines = {row.name: row for row in seen[-1].machines}
        lost = tuple(site for site, name in sites.items() if name not in machines or machines[name].is_gone)
        return Readings(
            tuple(taken),
            tuple(latency),
            arrived / seconds,
            (waiting[-1] - waiting[0]) / max(seconds - seen[0].seconds, 1e-9),
            self._operators(plan, seen),
            _cpu_by_site(seen, sites),
            lost if any(row.vm_class for row in machines.values()) else (),
        )

    def _operators(self, plan: DeploymentPlan, seen: Sequence[Observation]) -> dict[str, OperatorReading]:
        speed = statistics.mean(each.machines.mean_speed() or 1.0 for each in seen)
        seconds = sum(each.seconds for each in seen)
        named = {signature: str(name) for name, signature in self.signatures.items()}
        count = dict(zip(plan.items.names, plan.items.count.tolist(), strict=True))
        readings = {}
        for task in seen[-1].tasks:
            name = named.get(task.task)
            if name is None or task.profile is None:
                continue
            rate = sum(one.rows_in for each in seen for one in each.tasks if one.task == task.task) / seconds
            cpu_s = task.profile.cpu_s_per_row * speed
            wait_s = max(task.profile.sojourn_s_per_row - task.profile.cpu_s_per_row, 0.0)
            busy = min(rate * task.profile.sojourn_s_per_row / count[name], 1.0)
            readings[name] = OperatorReading(rate, cpu_s, wait_s, busy, busy, 0.0)
        return readings


def _is_steady(taken: Sequence[float]) -> bool:
    middle = statistics.median(taken)
    return middle > 0 and all(abs(each - middle) <= STEADY * middle for each in taken)


def _cpu_by_site(seen: Sequence[Observation], sites: Mapping[str, str]) -> dict[str, float]:
    """Reference cores that the machine of each site used, on the mean."""
    used = {}
    for site, name in sites.items():
        cores = [
            row.busy * row.cores * (row.speed or 1.0)
            for each in seen
            for row in each.machines
            if row.name == name and row.busy is not None
        ]
        if cores:
            used[site] = statistics.mean(cores)
    return used
