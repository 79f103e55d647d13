"""The controller of an engine, and its machines, as one principal may use them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from headgate.access.authority import Verb, check_access
from headgate.access.principal import Principal
from headgate.service.control import ControlLoop, PolicyMode, choice_facts, policy_facts
from headgate.service.decisions import decisions, why
from headgate.service.engine_machines import machine_facts, machines_facts
from headgate.store.entries import Acknowledged, Audited

__all__ = ["PrincipalControl"]

Acknowledger = Callable[[Mapping[str, Any]], Acknowledged]


class PrincipalControl:
    """The only way in which a request reaches a controller; it raises what :func:`check_access` does."""

    def __init__(self, loop: ControlLoop, principal: Principal) -> None:
        self._loop = loop
        self._who = principal

    def policy(self) -> dict[str, Any]:
        """What decides, and what it thought last."""
        check_access(self._who, Verb.READ)
        return policy_facts(self._loop)

    def decisions(self, since: float, most: int) -> list[dict[str, Any]]:
        """The newest decisions, oldest first."""
        check_access(self._who, Verb.READ)
        return decisions(self._loop.journal, since, most)

    def why(self, number: int, again: bool) -> dict[str, Any]:
        """One decision."""
        check_access(self._who, Verb.READ)
        return why(self._loop.journal, number, again)

    def machines(self, everything: bool = False) -> dict[str, Any]:
        """The machines of the engine."""
        check_access(self._who, Verb.READ)
        return machines_facts(self._loop.engine, everything)

    def choose(self, policy: str | None, mode: str | None, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Let another policy decide, in another mode or within other limits."""
        check_access(self._who, Verb.OPERATE)
        wanted = None if mode is None else PolicyMode(mode)
        named = {"policy": policy, "mode": mode, **{name: str(value) for name, value in limits.items()}}
        objects = [f"{name} {value}" for name, value in named.items() if value is not None]
        entry = self._audited("policy", objects)
        self._loop.choose(self._who.name, (entry,), policy=policy, mode=wanted, **_limits(limits))
        return choice_facts(self._loop.controller.choice)

    def acquire(self, vm_class: str, acknowledge: Acknowledger | None) -> dict[str, Any]:
        """Acquire a machine; asked for twice with one request id, it is one machine."""
        check_access(self._who, Verb.OPERATE)
        scaling = self._loop.engine.scaling
        scaling.check([vm_class], [])
        key = None if acknowledge is None else f"request/{acknowledge({}).request}"
        machine = scaling.acquire(vm_class, key)
        self._loop.journal.append(self._audited("acquire", [machine.name]))
        return machine_facts(machine, time.time())

    def release(self, machine: str) -> dict[str, Any]:
        """Release a machine after its current work."""
        check_access(self._who, Verb.OPERATE)
        engine = self._loop.engine
        engine.release(machine)
        self._loop.journal.append(self._audited("release", [machine]))
        return {"name": machine, "state": "draining"}

    def scale(self, executors: int) -> dict[str, Any]:
        """Have so many executors."""
        check_access(self._who, Verb.OPERATE)
        self._loop.engine.scale(executors)
        self._loop.journal.append(self._audited("scale", [str(executors)]))
        return {"executors": executors}

    def _audited(self, action: str, objects: Sequence[str]) -> Audited:
        who = self._who
        return Audited(time.time(), who.name, who.role.value, who.origin, action, tuple(objects), "done")


def _limits(given: Mapping[str, Any]) -> dict[str, Any]:
    """Limits as guard rails have them."""
    limits = dict(given)
    if limits.get("budget_per_h") is not None:
        limits["budget_per_h"] = Decimal(str(limits["budget_per_h"]))
    return limits
