"""A running engine as the API serves it: a change that is asked for twice with one request id is made once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headgate.access.authority import Verb, check_access
from headgate.access.policy import AccessPolicy
from headgate.access.principal import Principal
from headgate.access.rules import TenantRules
from headgate.errors import InputError
from headgate.service.audit import RefusalLog
from headgate.service.control import ControlLoop
from headgate.service.engine import JournaledEngine
from headgate.service.events import EventFeed, LiveEvent
from headgate.service.health import readiness
from headgate.service.metrics import EngineMetrics
from headgate.service.operations import Operations
from headgate.service.owner_use import MeasuredUse
from headgate.service.principal_control import PrincipalControl
from headgate.service.principal_engine import PrincipalEngine
from headgate.service.tokens import Tokens
from headgate.sharing.applied import Acknowledge, Applied
from headgate.store.entries import Acknowledged
from headgate.store.journal import Journal
from headgate.tasks.registry import Registry

__all__ = ["Acknowledge", "Acknowledger", "Answer", "ServedEngine", "acknowledging"]

Answer = tuple[int, Mapping[str, Any]]
"""A status of HTTP, and a JSON object."""

Acknowledger = Callable[[Mapping[str, Any]], Acknowledged]
"""Makes the entry that says what a request is answered."""


def acknowledging(
    acknowledge: Acknowledger | None, answer: Callable[[Applied], Mapping[str, Any]]
) -> Acknowledge | None:
    """What becomes durable with a change: the answer to who asked for it, if that one gave an id."""
    return None if acknowledge is None else lambda applied: [acknowledge(answer(applied))]


class ServedEngine:
    """An engine, the task types that it knows, who may use it, and the answers that it has given."""

    def __init__(
        self,
        engine: JournaledEngine,
        registry: Registry,
        policy: AccessPolicy | None = None,
        rules: TenantRules | None = None,
        control: ControlLoop | None = None,
    ) -> None:
        self._engine, self.registry, self._control = engine, registry, control
        self.rules = rules or TenantRules()
        self.policy = policy or AccessPolicy()
        self.state = Path(engine.about()["state"])
        self._use = MeasuredUse(self.state)
        self.refusals = RefusalLog(self.state)
        self.tokens = Tokens(engine.journal, self.state)
        self.events = EventFeed(engine, self.state)
        self.metrics = EngineMetrics(engine, self.state)
        self.operations = Operations(self.state, lambda facts: self.events.tell(LiveEvent("operation", facts)))

    @property
    def journal(self) -> Journal:
        """What the engine must not forget, to be read."""
        return self._engine.journal

    def acting_for(self, principal: Principal) -> PrincipalEngine:
        """The engine as somebody may use it; requests have no other way to it."""
        return PrincipalEngine(self._engine, principal, self.rules, self._use)

    def control_for(self, principal: Principal) -> PrincipalControl:
        """The controller as somebody may use it; raises :class:`InputError` if the engine has none."""
        if self._control is None:
            message = "this engine has no controller: only one that 'headgate run' has started decides by itself"
            raise InputError("NO_CONTROLLER", message)
        return PrincipalControl(self._control, principal)

    def recommend(self, who: Principal, policy: str) -> dict[str, Any]:
        """What a policy would do now."""
        check_access(who, Verb.READ)
        from headgate.service.recommend import recommend  # only who asks waits for what it imports

        return recommend(self.state, policy)

    def close(self) -> None:
        """The engine stops: followers are told, and long work ends."""
        self.events.close()
        self.operations.close()

    def health(self, since: float) -> dict[str, Any]:
        """Whether the engine can do its work; it serves since then."""
        return readiness(self._engine, self.state, since)

    def once(self, request: str, fingerprint: str, change: Callable[[Acknowledger], Answer]) -> Answer:
        """Make a change, or answer as before if the request was answered. Called for one change at a time.

        ``change`` appends the answer, as the function makes it that it is given, together with what it changes.
        Whenever the process is killed, the same request gets the same answer after a restart, and the change is there
        once.
        """
        before = self._answer(request)
        if before is not None:
            if before.fingerprint != fingerprint:
                message = f"Request id '{request}' was used for another request. Choose a new id for each request."
                raise InputError("REQUEST_ID_REUSED", message)
            return before.status, before.body
        status, body = change(lambda answer: Acknowledged(request, fingerprint, 200, answer, time.time()))
        if status < 500 and self._answer(request) is None:  # nothing has changed
            self._engine.journal.append(Acknowledged(request, fingerprint, status, body, time.time()))
        return status, body

    def _answer(self, request: str) -> Acknowledged | None:
        answer = self._engine.journal.latest(Acknowledged, request)
        return answer if answer is not None and answer.at >= time.time() - Acknowledged.KEPT_S else None
