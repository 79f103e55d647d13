"""An attack as a value: what is sent, and what may come of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import httpx

from headgate_benchmarks.tenants.program import EngineProgram

__all__ = ["Attack", "Expected", "flow", "request", "submission"]

PATIENCE_S = 60.0

Send = Callable[[EngineProgram], httpx.Response]


class Expected(Enum):
    """What may come of an attack."""

    REFUSED = "refused"
    RUNS = "runs"
    """Accepted, and harms nobody but itself."""

    EITHER = "either"


@dataclass(frozen=True, slots=True)
class Attack:
    """Something that a hostile member of another team sends."""

    name: str
    send: Send = field(repr=False)
    expected: Expected = Expected.REFUSED
    dataflow: str | None = None
    """What it leaves running, if it is accepted."""


def request(
    method: str,
    path: str,
    *,
    team: str | None = "mallory",
    key: str | None = None,
    **sent: Any,
) -> Send:
    """Send a request in the name of a team; with ``team`` ``None`` without a token."""

    def send(engine: EngineProgram) -> httpx.Response:
        headers = {"Idempotency-Key": key or str(uuid.uuid4()), **sent.get("headers", {})}
        if team is not None:
            headers = {"Authorization": f"Bearer {engine.tokens[team]}", **headers}
        rest = {name: value for name, value in sent.items() if name != "headers"}
        with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
            return client.request(method, f"{engine.url}/v1{path}", headers=headers, **rest)

    return send


def submission(name: str, document: Mapping[str, Any], expected: Expected, *, replace: bool = False) -> Attack:
    """An attack by a dataflow."""
    body = {"dataflows": [document], "replace": replace}
    return Attack(name, request("POST", "/dataflows", json=body), expected, str(document["name"]))


def flow(
    folder: str, name: str, *steps: Mapping[str, Any], sink: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A dataflow of the hostile team over the rows that honest ones read too."""
    plain = "".join(letter if letter.isalnum() else "_" for letter in name)[:60]
    source = {"id": "in", "type": "read_files", "config": {"path": f"{folder}/in", "columns": COLUMNS}}
    tasks: list[dict[str, Any]] = [source]
    own = {"type": "write_files", "config": {"path": f"{folder}/mallory/{plain}"}}
    for number, task in enumerate((*steps, sink or own)):
        tasks.append({"id": f"t{number}", **task, "inputs": [tasks[-1]["id"]]})
    return {"name": f"mallory_{plain}", "owner": "mallory", "tasks": tasks, **more}


COLUMNS = "id bigint, k string, v double"
