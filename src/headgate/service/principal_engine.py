"""An engine as one principal may use it: every use is checked, and every change is noted with who made it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headgate.access.authority import ENGINE, AccessObject, Verb, check_access, may
from headgate.access.principal import AccessRole, Principal
from headgate.access.quota import OwnerUse, check_quotas, over_quota, use_by_owner
from headgate.access.rules import TenantRules
from headgate.model.alternate_choice import ActiveAlternate
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, TaskId
from headgate.model.redrive_result import RedriveResult
from headgate.model.service_level import ServiceLevel
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.report.text import describe_service_level
from headgate.service.dead_letters import dead_letters as read_dead_letters
from headgate.service.engine import RunningEngine
from headgate.service.owner_use import MeasuredUse
from headgate.service.touched_places import check_places
from headgate.sharing.applied import Acknowledge, AcknowledgeRedrive, Applied
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet
from headgate.store.entries import Audited

__all__ = ["PrincipalEngine"]

HIDDEN = "hidden: only its owner's members and operators may see why"


class PrincipalEngine:
    """The only way in which a request reaches an engine. It raises what :func:`check_access` does."""

    def __init__(
        self,
        engine: RunningEngine,
        principal: Principal,
        rules: TenantRules | None = None,
        use: MeasuredUse | None = None,
    ) -> None:
        self._engine, self._rules = engine, rules or TenantRules()
        self._use = use
        self.principal = principal

    @property
    def shared(self) -> SharedSet:
        check_access(self.principal, Verb.READ)
        return self._engine.shared

    @property
    def dataflows(self) -> Sequence[Dataflow]:
        check_access(self.principal, Verb.READ)
        return self._engine.dataflows

    def about(self) -> dict[str, Any]:
        check_access(self.principal, Verb.READ)
        return self._engine.about()

    def status(self) -> tuple[Sequence[DataflowStatus], Sequence[FragmentStatus]]:
        """How dataflows and fragments are doing. Reasons may quote rows: others' are hidden."""
        check_access(self.principal, Verb.READ)
        flows, fragments = self._engine.status()
        seen = [flow if not flow.reason or self._sees(flow) else replace(flow, reason=HIDDEN) for flow in flows]
        if self.principal.is_at_least(AccessRole.OPERATOR):
            return seen, fragments
        return seen, [one if one.failure is None else replace(one, failure=HIDDEN) for one in fragments]

    def submit(
        self,
        *dataflows: SignedDataflow,
        replace: bool = False,
        allow_partial: bool = False,
        acknowledge: Acknowledge | None = None,
    ) -> Applied:
        """Submit for owners that the principal may speak for, in place of dataflows that it may change."""
        new = [AccessObject(signed.dataflow.owner, signed.name) for signed in dataflows]
        check_access(self.principal, Verb.SUBMIT, *new)
        there = self._engine.shared.running.submitted
        replaced = [self._object(signed.name) for signed in dataflows if signed.name in there]
        if replaced:
            check_access(self.principal, Verb.CHANGE, *replaced)
        self._check_rules([signed.dataflow for signed in dataflows])
        names = [signed.name for signed in dataflows]
        return self._engine.submit(
            *dataflows,
            replace=replace,
            allow_partial=allow_partial,
            acknowledge=self._noted("replace" if replaced else "submit", names, acknowledge),
        )

    def _check_rules(self, dataflows: Sequence[Dataflow]) -> None:
        """Raise :class:`InputError` if dataflows may not use or touch what they use or touch."""
        for dataflow in dataflows:
            self._rules.check(self.principal, dataflow)
        shared, replaced = self._engine.shared, {dataflow.name for dataflow in dataflows}
        running = [one.written for name, one in shared.running.submitted.items() if name not in replaced]
        used = use_by_owner([*running, *dataflows], self.measured_use())
        check_quotas(self._rules.quotas, self._rules.quota, used, {dataflow.owner for dataflow in dataflows})
        state = Path(self._engine.about()["state"])
        check_places(self.principal, self._rules, state, dataflows, running, shared.registry)

    def measured_use(self) -> Mapping[str, OwnerUse]:
        """What owners use now; nothing where nobody measures."""
        return {} if self._use is None else self._use.by_owner()

    def over_quota(self) -> list[str]:
        """Which owners have more than they may, as sentences."""
        used = use_by_owner(self.dataflows, self.measured_use())
        return over_quota(self._rules.quotas, self._rules.quota, used)

    def withdraw(self, *names: str, acknowledge: Acknowledge | None = None) -> Applied:
        self._check_change(*names)
        return self._engine.withdraw(*names, acknowledge=self._noted("withdraw", names, acknowledge))

    def pause(self, name: str, acknowledge: Acknowledge | None = None) -> None:
        self._check_change(name)
        self._engine.pause(name, self._noted("pause", [name], acknowledge))

    def resume(self, name: str, acknowledge: Acknowledge | None = None) -> None:
        self._check_change(name)
        self._engine.resume(name, self._noted("resume", [name], acknowledge))

    def limit(self, dataflow: str, task: str, rows: int | None, acknowledge: Acknowledge | None = None) -> None:
        self._check_change(*self._users(dataflow, task))
        noted = self._noted("limit", [f"{dataflow}.{task}", str(rows)], acknowledge)
        self._engine.limit(dataflow, task, rows, noted)

    def switch(
        self, dataflow: str, task: str, alternate: str, acknowledge: Acknowledge | None = None, by: str = ""
    ) -> None:
        """Switch as the principal, whoever ``by`` says that it is."""
        del by
        self._check_change(*self._users(dataflow, task))
        noted = self._noted("switch", [f"{dataflow}.{task}", alternate], acknowledge)
        self._engine.switch(dataflow, task, alternate, noted, by=self.principal.name)

    def release_task(self, dataflow: str, task: str, acknowledge: Acknowledge | None = None) -> None:
        self._check_change(*self._users(dataflow, task))
        self._engine.release_task(dataflow, task, self._noted("release", [f"{dataflow}.{task}"], acknowledge))

    def repartition(
        self, dataflow: str, task: str, partitions: int | None, acknowledge: Acknowledge | None = None
    ) -> None:
        self._check_change(*self._users(dataflow, task))
        noted = self._noted("repartition", [f"{dataflow}.{task}", str(partitions)], acknowledge)
        self._engine.repartition(dataflow, task, partitions, noted)

    def redrive(self, dataflow: str, task: str, acknowledge: AcknowledgeRedrive | None = None) -> RedriveResult:
        """Offer rows that failed again, as somebody who may change all dataflows that share the task."""
        self._check_change(*self._users(dataflow, task))
        entry = self._entry("redrive", [f"{dataflow}.{task}"])
        return self._engine.redrive(
            dataflow, task, lambda result: [*(() if acknowledge is None else acknowledge(result)), entry]
        )

    def set_level(self, name: str, level: ServiceLevel | None, acknowledge: Acknowledge | None = None) -> None:
        self._check_change(name)
        said = "as written" if level is None else describe_service_level(level)
        self._engine.set_level(name, level, self._noted("level", [name, said], acknowledge))

    def alternates(self, name: str) -> Mapping[TaskId, ActiveAlternate]:
        check_access(self.principal, Verb.READ)
        return self._engine.alternates(name)

    def dead_letters(self, state: Path, dataflow: str | None, task: str | None) -> list[dict[str, Any]]:
        """The rows that failed in tasks of dataflows that the principal may inspect."""
        check_access(self.principal, Verb.READ)
        if dataflow is not None and dataflow in self._engine.shared.running.submitted:
            check_access(self.principal, Verb.INSPECT, self._object(dataflow))
        owners = {flow.name: flow.owner for flow in self._engine.dataflows}

        def is_seen(letter: dict[str, Any]) -> bool:
            objects = [AccessObject(owners.get(DataflowName(name)), name) for name in letter["dataflows"]]
            return any(may(self.principal, Verb.INSPECT, what) for what in objects)

        letters = read_dead_letters(state, dataflow, task)
        return [self.seen_letter(letter) for letter in letters if is_seen(letter)]

    def tail(self, dataflow: str, task: str, viewer: Callable[[list[Any]], None]) -> Callable[[], None]:
        """Show rows of a task, as who may inspect the dataflow may see them; returns what ends that."""
        check_access(self.principal, Verb.READ)
        check_access(self.principal, Verb.INSPECT, self._object(dataflow))
        return self._engine.tail(
            dataflow, task, lambda rows: viewer([self._rules.shown(self.principal, json.loads(row)) for row in rows])
        )

    def seen_letter(self, letter: Mapping[str, Any]) -> dict[str, Any]:
        """A dead letter with masked columns hidden."""
        return {**letter, "record": self._rules.shown(self.principal, letter["record"])}

    def _object(self, name: str) -> AccessObject:
        """A dataflow with its owner; raises :class:`InputError` if it does not run."""
        return AccessObject(self._engine.shared.running.find(name).dataflow.owner, name)

    def _users(self, dataflow: str, task: str) -> list[str]:
        """The dataflows that share a task: what is set for one is set for all of them."""
        running = self._engine.shared.running
        signature = running.find(dataflow).signatures.get(TaskId(task))
        return [dataflow, *(() if signature is None else sorted(running.users(signature)))]

    def _check_change(self, *names: str) -> None:
        check_access(self.principal, Verb.READ)  # whether a name exists is not for everybody
        check_access(self.principal, Verb.CHANGE, *map(self._object, dict.fromkeys(names)))

    def _sees(self, flow: DataflowStatus) -> bool:
        return may(self.principal, Verb.INSPECT, AccessObject(flow.owner, DataflowName(flow.name)))

    def _entry(self, action: str, objects: Sequence[str]) -> Audited:
        who = self.principal
        return Audited(time.time(), who.name, who.role.value, who.origin, action, tuple(objects), "done")

    def _noted(self, action: str, objects: Sequence[str], acknowledge: Acknowledge | None) -> Acknowledge:
        """What becomes durable with a change: what was asked for, and who made it."""
        entry = self._entry(action, objects)
        return lambda applied: [*(() if acknowledge is None else acknowledge(applied)), entry]


def check_bill(principal: Principal, owner: str | None) -> None:
    """Raise :class:`AccessRefused` unless somebody may see a bill: an owner's, or all of it."""
    check_access(principal, Verb.INSPECT, ENGINE if owner is None else AccessObject(owner))
