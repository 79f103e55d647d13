"""The requests that a client may send, one method each; who inherits them says how they are sent."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

__all__ = ["ApiRequest", "ApiRequests", "rows_path"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


class ApiRequests(ABC, Generic[R]):
    """Everything that can be asked of a service.

    Every change has a request id, made up unless given. Sent again with the same id, also after a restart of the
    engine, it is made only once and gets the same answer.
    """

    @abstractmethod
    def send(self, request: ApiRequest) -> R:
        """Send a request and return what it is answered; raises what the engine refuses."""

    def submit(
        self,
        documents: Sequence[Mapping[str, Any]],
        *,
        replace: bool = False,
        allow_partial: bool = False,
        request_id: str | None = None,
    ) -> R:
        """Submit dataflows, as their JSON documents; all of them or none."""
        body = {"dataflows": list(documents), "replace": replace, "allow_partial": allow_partial}
        return self._change("POST", "/dataflows", request_id, body)

    def withdraw(self, names: Sequence[str], *, request_id: str | None = None) -> R:
        """Withdraw dataflows, all of them or none."""
        return self._change("POST", "/withdrawals", request_id, {"dataflows": list(names)})

    def pause(self, dataflow: str, *, request_id: str | None = None) -> R:
        """Pause a dataflow: its sinks get no rows until it is resumed."""
        return self._change("POST", f"/dataflows/{_part(dataflow)}/pause", request_id)

    def resume(self, dataflow: str, *, request_id: str | None = None) -> R:
        """Resume a paused dataflow."""
        return self._change("POST", f"/dataflows/{_part(dataflow)}/resume", request_id)

    def set_level(self, dataflow: str, changes: Mapping[str, Any] | None, *, request_id: str | None = None) -> R:
        """Change limits of a dataflow, by their names in its file; ``None`` returns to those of its author."""
        path = f"/dataflows/{_part(dataflow)}/level"
        return self._change("DELETE" if changes is None else "PATCH", path, request_id, changes)

    def limit(self, dataflow: str, task: str, rows: int | None, *, request_id: str | None = None) -> R:
        """Limit the rows that a source or stateful task takes per trigger; ``None`` removes the limit."""
        return self._change("PUT", _task(dataflow, task, "limit"), request_id, {"rows": rows})

    def switch(self, dataflow: str, task: str, alternate: str, *, request_id: str | None = None) -> R:
        """Make another alternate of a task active."""
        return self._change("PUT", _task(dataflow, task, "alternate"), request_id, {"alternate": alternate})

    def release_task(self, dataflow: str, task: str, *, request_id: str | None = None) -> R:
        """Let policies choose again how a task is done."""
        return self._change("POST", _task(dataflow, task, "release"), request_id)

    def repartition(self, dataflow: str, task: str, partitions: int | None, *, request_id: str | None = None) -> R:
        """Set on how many partitions a task runs; ``None`` leaves it to the task's input."""
        return self._change("PUT", _task(dataflow, task, "partitions"), request_id, {"partitions": partitions})

    def dataflows(self) -> R:
        """The dataflows, in the order of submission."""
        return self._get("/dataflows")

    def status(self, dataflow: str | None = None) -> R:
        """Dataflows and fragments; or one dataflow with its tasks and who shares them."""
        return self._get("/status" if dataflow is None else f"/dataflows/{_part(dataflow)}")

    def observations(self, since: float = 0.0, limit: int = 1, *, oldest: bool = False) -> R:
        """The newest measurements since a moment, or the oldest ones; oldest first."""
        return self._get("/observations", since=since, limit=limit, oldest=oldest)

    def history(self, start: float, end: float, resolution_s: float = 60.0) -> R:
        """What was measured in a span of time, an observation for each step of it."""
        return self._get("/history", start=start, end=end, resolution=resolution_s)

    def dead_letters(self, dataflow: str | None = None, task: str | None = None) -> R:
        """The rows for which tasks raised, oldest first."""
        return self._get("/dead-letters", dataflow=dataflow, task=task)

    def redrive(self, dataflow: str, task: str, *, request_id: str | None = None) -> R:
        """Offer the rows again that a task has refused."""
        return self._change("POST", _task(dataflow, task, "redrive"), request_id)

    def recommend(self, policy: str) -> R:
        """What a policy would do now."""
        return self._get("/recommendation", policy=policy)

    def what_if(self, question: Mapping[str, Any], *, request_id: str | None = None) -> R:
        """Start to answer what the past would have been; the operation that does it."""
        return self._change("POST", "/what-ifs", request_id, question)

    def operations(self) -> R:
        """Long work, newest first."""
        return self._get("/operations")

    def operation(self, name: str) -> R:
        """One piece of long work, with its result."""
        return self._get(f"/operations/{_part(name)}")

    def cancel(self, name: str) -> R:
        """End a piece of long work."""
        return self.send(ApiRequest("DELETE", f"/operations/{_part(name)}"))

    def bill(
        self,
        owner: str | None = None,
        since: float | None = None,
        until: float | None = None,
        period_s: float | None = None,
    ) -> R:
        """Who pays what; between two moments, and with machines charged in whole periods of so many seconds."""
        return self._get("/bill", owner=owner, since=since, until=until, period_s=period_s)

    def lineage(self, of: str) -> R:
        """From which columns the columns of ``dataflow``, ``dataflow.task`` or one column come, and who needs it."""
        return self._get("/lineage", of=of)

    def me(self) -> R:
        """Who the engine takes this process for."""
        return self._get("/me")

    def version(self) -> R:
        """Which version serves."""
        return self._get("/version")

    def access(self) -> R:
        """Roles and teams."""
        return self._get("/access")

    def audit(self, since: float = 0.0, limit: int = 100) -> R:
        """Who changed what, and what was refused, oldest first."""
        return self._get("/audit", since=since, limit=limit)

    def policy(self) -> R:
        """Which policy decides, and what it thought last."""
        return self._get("/policy")

    def choose_policy(self, changes: Mapping[str, Any], *, request_id: str | None = None) -> R:
        """Let another policy decide, in another mode or within other limits; what is left out stays."""
        return self._change("PUT", "/policy", request_id, changes)

    def decisions(self, since: float = 0.0, limit: int = 100) -> R:
        """The newest decisions, oldest first."""
        return self._get("/decisions", since=since, limit=limit)

    def why(self, number: int, *, again: bool = False) -> R:
        """One decision with all that is known of it."""
        return self._get(f"/decisions/{number}", again=again)

    def machines(self, *, gone: bool = False) -> R:
        """The machines of the engine; with ``gone`` all there ever were."""
        return self._get("/machines", gone=gone)

    def acquire(self, vm_class: str, *, request_id: str | None = None) -> R:
        """Acquire a machine."""
        return self._change("POST", "/machines", request_id, {"vm_class": vm_class})

    def release(self, machine: str, *, request_id: str | None = None) -> R:
        """Release a machine after its current work."""
        return self._change("DELETE", f"/machines/{_part(machine)}", request_id)

    def scale(self, executors: int, *, request_id: str | None = None) -> R:
        """Have so many executors."""
        return self._change("PUT", "/executors", request_id, {"executors": executors})

    def create_token(
        self, name: str, role: str, teams: Sequence[str] = (), expires_in_s: float | None = 90 * 86_400.0
    ) -> R:
        """Make a token; its secret is in the answer and nowhere else."""
        body = {"name": name, "role": role, "teams": list(teams), "expires_in_s": expires_in_s}
        return self.send(ApiRequest("POST", "/tokens", body))

    def tokens(self) -> R:
        """The tokens, without their secrets."""
        return self._get("/tokens")

    def revoke_token(self, name: str) -> R:
        """Revoke a token."""
        return self.send(ApiRequest("DELETE", f"/tokens/{_part(name)}"))

    def _get(self, path: str, **query: Any) -> R:
        given = {name: value for name, value in query.items() if value is not None}
        return self.send(ApiRequest("GET", path, query=given))

    def _change(self, method: str, path: str, request_id: str | None, body: Mapping[str, Any] | None = None) -> R:
        headers = {"Idempotency-Key": request_id or str(uuid.uuid4())}
        return self.send(ApiRequest(method, path, body, headers=headers))


def rows_path(dataflow: str, task: str) -> str:
    """Where rows of a task are followed."""
    return _task(dataflow, task, "rows")


def _part(name: str) -> str:
    return quote(name, safe="")


def _task(dataflow: str, task: str, setting: str) -> str:
    return f"/dataflows/{_part(dataflow)}/tasks/{_part(task)}/{setting}"
