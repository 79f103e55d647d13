"""A running engine as the API serves it: a change that is asked for twice with one request id is made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headgate.errors import InputError
from headgate.service.engine import RunningEngine
from headgate.store.request_log import RequestLog
from headgate.tasks.registry import Registry

__all__ = ["Announce", "Answer", "ServedEngine"]

Answer = tuple[int, Mapping[str, Any]]
"""A status of HTTP, and a JSON object."""

Announce = Callable[[Mapping[str, Any]], None]


class ServedEngine:
    """An engine, the task types that it knows, and the answers that it has given."""

    def __init__(self, engine: RunningEngine, registry: Registry) -> None:
        about = engine.about()
        self.engine, self.registry = engine, registry
        self.state = Path(about["state"])
        self._answers = RequestLog(self.state / "requests.jsonl", about["snapshot"])

    def once(self, request: str, fingerprint: str, change: Callable[[Announce], Answer]) -> Answer:
        """Make a change, or answer as before if the request was answered. Called for one change at a time.

        ``change`` hands its answer to the function that it is given just before the change becomes durable. Whenever
        the process is killed, the same request gets the same answer after a restart, and the change is there once.
        """
        before = self._answers.find(request)
        if before is not None:
            if before.fingerprint != fingerprint:
                message = f"Request id '{request}' was used for another request. Choose a new id for each request."
                raise InputError("REQUEST_ID_REUSED", message)
            return before.status, before.body
        announced = 0

        def announce(body: Mapping[str, Any]) -> None:
            nonlocal announced
            announced = body["snapshot"]
            self._answers.record(request, fingerprint, 200, body, announced)

        try:
            status, body = change(announce)
        except Exception:
            self._forget_unmade(request, announced)
            raise
        if status >= 500:
            self._forget_unmade(request, announced)
        elif not self._is_durable(announced):
            self._answers.record(request, fingerprint, status, body)
        return status, body

    def _is_durable(self, snapshot: int) -> bool:
        return 0 < snapshot <= int(self.engine.about()["snapshot"])

    def _forget_unmade(self, request: str, announced: int) -> None:
        if not self._is_durable(announced):
            self._answers.forget(request)
