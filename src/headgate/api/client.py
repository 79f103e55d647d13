"""The client of a running engine's API, on the Unix socket of its state directory. The command line uses it."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from headgate.api.place import is_supervised, socket_place
from headgate.api.problems import CONTENT_TYPE, error_of
from headgate.errors import HeadgateError, InputError, os_reason

__all__ = ["EngineClient"]

CONNECT_S = 10.0
RETRY_EVERY_S = 0.5
PATIENCE_S = 120.0
"""How long a request waits for an engine that is being started again."""

Answer = dict[str, Any]


class EngineClient:
    """Sends requests to the engine of a state directory; raises what the engine refuses.

    Every change has a request id, made up unless given. Sent again with the same id, also after a restart of the
    engine, it is made only once and gets the same answer. A request whose engine dies, or is just being started, is
    sent again until there is an answer; ``waiting`` is called with the reason, once.
    """

    def __init__(
        self, state: Path | str, waiting: Callable[[str], None] | None = None, patience_s: float = PATIENCE_S
    ) -> None:
        self.state = Path(state)
        self._waiting, self._patience_s = waiting, patience_s
        # A connection for each request: one that is kept may be closed by the engine just as it is used again.
        limits = httpx.Limits(max_keepalive_connections=0)
        transport = httpx.HTTPTransport(uds=str(socket_place(self.state)), limits=limits, verify=False)
        timeout = httpx.Timeout(None, connect=CONNECT_S)
        self._http = httpx.Client(transport=transport, base_url="http://engine/v1", timeout=timeout, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def submit(
        self, documents: Sequence[Mapping[str, Any]], *, replace: bool = False, request_id: str | None = None
    ) -> Answer:
        """Submit dataflows, as their JSON documents; all of them or none."""
        body = {"dataflows": list(documents), "replace": replace}
        return self._change("POST", "/dataflows", request_id, body)

    def withdraw(self, names: Sequence[str], *, request_id: str | None = None) -> Answer:
        """Withdraw dataflows, all of them or none."""
        return self._change("POST", "/withdrawals", request_id, {"dataflows": list(names)})

    def pause(self, dataflow: str, *, request_id: str | None = None) -> Answer:
        """Pause a dataflow: its sinks get no rows until it is resumed."""
        return self._change("POST", f"/dataflows/{_part(dataflow)}/pause", request_id)

    def resume(self, dataflow: str, *, request_id: str | None = None) -> Answer:
        """Resume a paused dataflow."""
        return self._change("POST", f"/dataflows/{_part(dataflow)}/resume", request_id)

    def limit(self, dataflow: str, task: str, rows: int | None, *, request_id: str | None = None) -> Answer:
        """Limit the rows that a source or stateful task takes per trigger; ``None`` removes the limit."""
        return self._change("PUT", _task(dataflow, task, "limit"), request_id, {"rows": rows})

    def switch(self, dataflow: str, task: str, alternate: str, *, request_id: str | None = None) -> Answer:
        """Make another alternate of a task active."""
        return self._change("PUT", _task(dataflow, task, "alternate"), request_id, {"alternate": alternate})

    def release_task(self, dataflow: str, task: str, *, request_id: str | None = None) -> Answer:
        """Let policies choose again how a task is done."""
        return self._change("POST", _task(dataflow, task, "release"), request_id)

    def repartition(self, dataflow: str, task: str, partitions: int | None, *, request_id: str | None = None) -> Answer:
        """Set on how many partitions a task runs; ``None`` leaves it to the task's input."""
        return self._change("PUT", _task(dataflow, task, "partitions"), request_id, {"partitions": partitions})

    def dataflows(self) -> Answer:
        """The dataflows, in the order of submission."""
        return self._send("GET", "/dataflows")

    def status(self, dataflow: str | None = None) -> Answer:
        """Dataflows and fragments; or one dataflow with its tasks and who shares them."""
        return self._send("GET", "/status" if dataflow is None else f"/dataflows/{_part(dataflow)}")

    def observations(self, since: float = 0.0, limit: int = 1) -> Answer:
        """The newest measurements, oldest first."""
        return self._send("GET", "/observations", since=since, limit=limit)

    def bill(self, owner: str | None = None) -> Answer:
        """Who pays what."""
        return self._send("GET", "/bill", owner=owner)

    def me(self) -> Answer:
        """Who the engine takes this process for."""
        return self._send("GET", "/me")

    def access(self) -> Answer:
        """Roles and teams."""
        return self._send("GET", "/access")

    def audit(self, since: float = 0.0, limit: int = 100) -> Answer:
        """Who changed what, and what was refused, oldest first."""
        return self._send("GET", "/audit", since=since, limit=limit)

    def policy(self) -> Answer:
        """Which policy decides, and what it thought last."""
        return self._send("GET", "/policy")

    def choose_policy(self, changes: Mapping[str, Any], *, request_id: str | None = None) -> Answer:
        """Let another policy decide, in another mode or within other limits; what is left out stays."""
        return self._change("PUT", "/policy", request_id, changes)

    def decisions(self, since: float = 0.0, limit: int = 100) -> Answer:
        """The newest decisions, oldest first."""
        return self._send("GET", "/decisions", since=since, limit=limit)

    def why(self, number: int, *, again: bool = False) -> Answer:
        """One decision with all that is known of it."""
        return self._send("GET", f"/decisions/{number}", again=again)

    def machines(self, *, gone: bool = False) -> Answer:
        """The machines of the engine; with ``gone`` all there ever were."""
        return self._send("GET", "/machines", gone=gone)

    def acquire(self, vm_class: str, *, request_id: str | None = None) -> Answer:
        """Acquire a machine."""
        return self._change("POST", "/machines", request_id, {"vm_class": vm_class})

    def release(self, machine: str, *, request_id: str | None = None) -> Answer:
        """Release a machine after its current work."""
        return self._change("DELETE", f"/machines/{_part(machine)}", request_id)

    def scale(self, executors: int, *, request_id: str | None = None) -> Answer:
        """Have so many executors."""
        return self._change("PUT", "/executors", request_id, {"executors": executors})

    def _change(self, method: str, path: str, request_id: str | None, body: Mapping[str, Any] | None = None) -> Answer:
        return self._send(method, path, body, {"Idempotency-Key": request_id or str(uuid.uuid4())})

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        request = self._http.build_request(method, path, json=body, headers=headers, params=_given(query))
        until, waits = time.monotonic() + self._patience_s, False
        while True:
            try:
                return self._sent_once(request)
            except _NotNowError as error:
                if time.monotonic() >= until or not is_supervised(self.state):
                    raise error.final from None
                if not waits and self._waiting is not None:
                    self._waiting(error.final.message)
                waits = True
                time.sleep(RETRY_EVERY_S)

    def _sent_once(self, request: httpx.Request) -> Answer:
        _check_reachable(self.state)
        try:
            response = self._http.send(request)
        except httpx.TransportError:
            message = (
                "The engine stopped before replying. Restart it and run `headgate list` to see whether the change was "
                "applied."
            )
            raise _NotNowError(InputError("ENGINE_GONE", message)) from None
        if response.headers.get("content-type", "") == CONTENT_TYPE:
            error = error_of(response.json())
            raise _NotNowError(error) if error.condition == "ENGINE_STARTING" else error
        if response.is_error:
            raise InputError("BAD_REQUEST", f"The engine cannot read the request: {response.text[:200]}")
        answer: Answer = response.json()
        return answer


class _NotNowError(Exception):
    """A request that may be answered when it is sent again; ``final`` is the error if it is not."""

    def __init__(self, final: HeadgateError) -> None:
        super().__init__(final.message)
        self.final = final


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _part(name: str) -> str:
    return quote(name, safe="")


def _task(dataflow: str, task: str, setting: str) -> str:
    return f"/dataflows/{_part(dataflow)}/tasks/{_part(task)}/{setting}"


def _check_reachable(state: Path) -> None:
    """Raise, if no engine listens, why, and how to start one."""
    start = f"Start one with: headgate run --serve --state {state}"
    if not state.is_dir():
        raise InputError("NO_ENGINE", f"No engine is running on {state}: there is no such directory. {start}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(str(socket_place(state)))
        except FileNotFoundError:
            raise _NotNowError(InputError("NO_ENGINE", f"No engine is running on {state}. {start}")) from None
        except ConnectionRefusedError:
            message = f"The engine of {state} is dead: its socket is there, but nothing listens. {start}"
            raise _NotNowError(InputError("ENGINE_DEAD", message)) from None
        except OSError as error:
            message = f"Cannot reach the engine of {state}: {os_reason(error)}."
            raise InputError("NO_ENGINE", message) from None
