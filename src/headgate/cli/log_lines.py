"""How a service says what happens: a line each, as text or as JSON."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from headgate.errors import printable
from headgate.model.status import DataflowStatus, FragmentStatus

__all__ = ["LogForm", "LogLines"]

STATUS_EVERY_S = 60.0


class LogForm(StrEnum):
    """How lines are written."""

    TEXT = "text"
    JSON = "json"


class LogLines:
    """Writes what happens to standard error. Threads may write at the same time."""

    def __init__(self, form: LogForm, requests: bool = True) -> None:
        self._form, self._requests = form, requests
        self._lock = threading.Lock()
        self._waiting = ""
        self._states: set[tuple[str, str, str]] = set()
        self._status_at = 0.0

    def say(self, sentence: str) -> None:
        """Something has happened."""
        self.note("service", message=sentence)

    def wait(self, what: str) -> None:
        """Something takes time."""
        if what != self._waiting:
            self._waiting = what
            self.note("service", message=what)

    def show(self, dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus]) -> None:
        """How dataflows are doing, when that changes; and now and then how many rows came out."""
        states = {(flow.name, flow.state, re.sub(r"\d[\d,]*", "0", flow.reason)) for flow in dataflows}
        for flow in dataflows:
            if (flow.name, flow.state, re.sub(r"\d[\d,]*", "0", flow.reason)) not in self._states:
                self.note("dataflow", dataflow=flow.name, owner=flow.owner, state=flow.state, reason=flow.reason)
        self._states = states
        if time.monotonic() - self._status_at >= STATUS_EVERY_S:
            self._status_at = time.monotonic()
            rows = sum(flow.rows_out for flow in dataflows)
            self.note("status", dataflows=len(dataflows), fragments=len(fragments), rows_out=rows)

    def request(self, facts: dict[str, Any]) -> None:
        """A request was answered."""
        if self._requests:
            self.note("request", **facts)

    def note(self, event: str, **facts: Any) -> None:
        """Write one line."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        given = {name: value for name, value in facts.items() if value not in (None, "")}
        if self._form is LogForm.JSON:
            line = json.dumps({"at": at, "event": event, **given})
        elif set(given) == {"message"}:
            line = f"{at} {event}: {given['message']}"
        else:
            line = f"{at} {event}: " + " ".join(f"{name}={value}" for name, value in given.items())
        with self._lock:
            sys.stderr.write(printable(line) + "\n")
            sys.stderr.flush()
