"""Deployments on a running engine: machines from its provider, placed partitions, and what it measures.

An engine runs a source and all stateless tasks behind it as one, so an instance is a partition of a source: it runs on
the machine that the plan names. Tasks with state run where Spark puts them.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from headgate.adaptation.deploying.readings import Readings
from headgate.errors import HeadgateError, InputError
from headgate.model.cluster.observation import Observation
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature, TaskId
from headgate.planning.placing.deployment_plan import DeploymentPlan
from headgate.service.deploy_readings import is_settled, readings_of

__all__ = ["EngineDoor", "LiveWorld"]

READY_WITHIN_S, STABLE_WITHIN_S = 180.0, 300.0
SETTLE_S = 15.0
LOOK_EVERY_S = 1.0
READINGS = 10
AT_ONCE_S = 5.0
"""A micro-batch takes at most the rows of so many seconds, or one that is late would hide what the next ones do."""


class EngineDoor(Protocol):
    """The requests that a deployment makes of an engine."""

    def machines(self, *, gone: bool = False) -> Mapping[str, Any]: ...
    def acquire(self, vm_class: str, *, request_id: str | None = None) -> Mapping[str, Any]: ...
    def release(self, machine: str, *, request_id: str | None = None) -> Mapping[str, Any]: ...
    def place(
        self, dataflow: str, task: str, machines: Sequence[str] | None, *, request_id: str | None = None
    ) -> Mapping[str, Any]: ...
    def limit(
        self, dataflow: str, task: str, rows: int | None, *, request_id: str | None = None
    ) -> Mapping[str, Any]: ...


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

    _acquired: dict[str, str] = field(default_factory=dict)
    """The machines that were acquired, with their classes."""

    _placed: set[str] = field(default_factory=set)
    _limited: set[str] = field(default_factory=set)
    _requests: int = 0

    def run(self, plan: DeploymentPlan) -> Readings:
        sites = self._deployed(plan)
        self._limit(plan)
        seen = self._stable(sites)
        self._note_misplaced(seen)
        return readings_of(plan, seen, self.signatures, sites)

    def settle(self, plan: DeploymentPlan | None) -> None:
        """Leave a plan running; of none, release all that was acquired, and leave partitions to Spark."""
        for name in sorted(self._limited):
            self.door.limit(self.dataflow.name, name, None, request_id=self._request())
        self._limited.clear()
        if plan is not None:
            self._deployed(plan)
            return
        for name in sorted(self._placed):
            # A dataflow that was withdrawn meanwhile has no places any more.
            with suppress(InputError):
                self.door.place(self.dataflow.name, name, None, request_id=self._request())
        self._placed.clear()
        for name in list(self._acquired):
            self._release(name)

    def _request(self) -> str:
        self._requests += 1
        return f"{self.key}/{self._requests}"

    # machines

    def _deployed(self, plan: DeploymentPlan) -> dict[str, str]:
        """Acquire what a plan lacks, place its instances, release what it does not need; machines by site."""
        facts = self.door.machines()
        if not facts["provider"]:
            self.not_enforced["machines"] = "this engine cannot acquire machines; run it with --cluster"
            hosts = [each["host"] for each in facts["executors"]] or ["localhost"]
            sites = {site.name: hosts[number % len(hosts)] for number, site in enumerate(plan.placement.sites)}
            self._place(plan, sites)
            return {}
        there = {each["name"]: each["vm_class"] for each in facts["machines"] if _is_there(each)}
        lacking = Counter(site.vm_class for site in plan.placement.sites)
        lacking.subtract(Counter(there.values()))
        for kind, count in lacking.items():
            for _ in range(count):
                self.step(f"acquiring a machine of class {kind}")
                answer = self.door.acquire(kind, request_id=self._request())
                self._acquired[answer["name"]] = kind
        sites = self._by_site(plan, self._ready())
        self._place(plan, sites)
        for name in [each for each in self._acquired if each not in sites.values()]:
            self._release(name)
        return sites

    def _ready(self) -> list[Mapping[str, Any]]:
        """The machines that take work, once all that were acquired do."""
        until = self.clock() + READY_WITHIN_S
        while True:
            facts = self.door.machines(gone=True)["machines"]
            machines = {each["name"]: each for each in facts}
            late = [name for name in self._acquired if name in machines and _is_late(machines[name])]
            if not late:
                self._acquired = {name: kind for name, kind in self._acquired.items() if _is_there(machines[name])}
                return [each for each in facts if each["state"] == "ready" and each["executors"]]
            if self.clock() >= until:
                message = f"machine {late[0]} is not ready after {READY_WITHIN_S:.0f} s"
                raise HeadgateError("NO_MACHINES", f"{message}; look at the provider, and try again")
            self.sleep(LOOK_EVERY_S)

    def _release(self, name: str) -> None:
        self.step(f"releasing {name}")
        del self._acquired[name]
        # One that has died meanwhile needs no release.
        with suppress(InputError):
            self.door.release(name, request_id=self._request())

    def _by_site(self, plan: DeploymentPlan, ready: list[Mapping[str, Any]]) -> dict[str, str]:
        """The machine that stands for each site: of its class, those of others first, which stay anyway."""
        left = sorted(ready, key=lambda each: each["name"] in self._acquired)
        chosen = {}
        for site in plan.placement.sites:
            match = next((each for each in left if each["vm_class"] == site.vm_class), None)
            if match is None:
                message = f"of machine class {site.vm_class} there are fewer than the plan needs, though they came"
                raise HeadgateError("NO_MACHINES", f"{message}; look at the provider, and try again")
            left.remove(match)
            chosen[site.name] = str(match["name"])
        return chosen

    def _place(self, plan: DeploymentPlan, sites: Mapping[str, str]) -> None:
        for name in plan.items.names:
            on = [sites[site.name] for site in plan.placement.sites for _ in range(site.instances.get(name, 0))]
            try:
                self.door.place(self.dataflow.name, name, on, request_id=self._request())
                self._placed.add(name)
                self.not_enforced.pop(f"places of {name}", None)
            except InputError as error:
                self.not_enforced[f"places of {name}"] = error.message

    def _limit(self, plan: DeploymentPlan) -> None:
        """Let micro-batches end, whatever waits."""
        for name, rate in zip(plan.items.names, plan.loads.outside_per_s.tolist(), strict=True):
            if rate and name not in self._limited:
                with suppress(InputError):  # of a type that has no limit
                    rows = max(1, math.ceil(rate * AT_ONCE_S))
                    self.door.limit(self.dataflow.name, name, rows, request_id=self._request())
                    self._limited.add(name)

    # what is seen

    def _stable(self, sites: Mapping[str, str]) -> list[Observation]:
        """The last readings, once throughput is steady, or after a while as they are; at once if a machine is lost."""
        began = self.clock()
        until, mine = began + STABLE_WITHIN_S, set(self.signatures.values())
        self.step("waiting until it is stable")
        while True:
            seen = [each for each in self.observed(began + SETTLE_S) if each.seconds > 0][-READINGS:]
            if seen and _lost(seen[-1], sites):
                return seen
            if len(seen) == READINGS and (is_settled(seen, mine) or self.clock() >= until):
                return seen
            if self.clock() >= until + READINGS * SETTLE_S:
                message = f"the engine has recorded {len(seen)} observations in {STABLE_WITHIN_S:.0f} s"
                raise HeadgateError("NOT_STABLE", f"{message}, too few to judge a deployment; is it running?")
            self.sleep(LOOK_EVERY_S)

    def _note_misplaced(self, seen: Sequence[Observation]) -> None:
        mine = set(self.signatures.values())
        counts = [one.misplaced or 0 for each in seen for one in each.fragments if mine.intersection(one.tasks)]
        self.not_enforced.pop("places", None)
        if any(counts):
            self.not_enforced["places"] = f"{sum(counts)} partitions ran on other machines than the plan's"


def _is_there(machine: Mapping[str, Any]) -> bool:
    return machine["state"] in ("starting", "ready")


def _is_late(machine: Mapping[str, Any]) -> bool:
    return machine["state"] == "starting" or (machine["state"] == "ready" and not machine["executors"])


def _lost(last: Observation, sites: Mapping[str, str]) -> bool:
    rows = {row.name: row for row in last.machines}
    return any(name not in rows or rows[name].is_gone for name in sites.values())
