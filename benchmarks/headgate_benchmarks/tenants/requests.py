"""What a hostile client sends beside dataflows: requests about others, and ones that are no requests."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx

from headgate_benchmarks.tenants.attack import Attack, Expected, flow, request
from headgate_benchmarks.tenants.program import EngineProgram

__all__ = ["HONEST_KEY", "request_attacks"]

HONEST_KEY = "honest-1"
"""The id of the request by which the honest team has submitted; guessing it must give nobody its answer."""

READ = Expected.EITHER
"""Answers that all may read: they must not have what is confidential."""


def request_attacks(folder: str) -> Iterator[Attack]:
    """All of them; the honest team has the dataflows a to d."""
    yield from _on_others(folder)
    yield from _as_others()
    yield from _malformed(folder)
    yield Attack("a thousand requests", _flood, READ)
    yield Attack("clients that never end", _slow, READ)


def _on_others(folder: str) -> Iterator[Attack]:
    submitted = {"dataflows": [flow(folder, "x")]}
    for method, path, sent in (
        ("DELETE", "/dataflows/a", {}),
        ("POST", "/withdrawals", {"json": {"dataflows": ["a", "b"]}}),
        ("POST", "/dataflows/a/pause", {}),
        ("POST", "/dataflows/a/resume", {}),
        ("PATCH", "/dataflows/a/level", {"json": {"max_latency_s": 1}}),
        ("PUT", "/dataflows/a/tasks/in/limit", {"json": {"rows": 1}}),
        ("PUT", "/dataflows/a/tasks/step/alternate", {"json": {"alternate": "x"}}),
        ("PUT", "/dataflows/a/tasks/step/partitions", {"json": {"partitions": 9}}),
        ("POST", "/dataflows/a/tasks/step/release", {}),
        ("GET", "/bill", {"params": {"owner": "honest"}}),
        ("GET", "/bill/dataflows/a", {}),
        ("GET", "/audit", {}),
        ("GET", "/tokens", {}),
        ("POST", "/tokens", {"json": {"name": "mine", "role": "admin", "teams": ["honest"], "expires_in_s": None}}),
        ("DELETE", "/tokens/honest", {}),
        ("PUT", "/policy", {"json": {"mode": "auto"}}),
        ("POST", "/machines", {"json": {"vm_class": "large"}}),
        ("DELETE", "/machines/local", {}),
        ("PUT", "/executors", {"json": {"count": 100}}),
    ):
        yield Attack(f"{method} {path}", request(method, path, **sent))
    yield Attack("another's request id", request("POST", "/dataflows", key=HONEST_KEY, json=submitted))
    for path in (
        *("/dataflows", "/dataflows/a", "/dataflows/a/tasks/step", "/status", "/graph", "/overview", "/lineage?of=a"),
        *("/dead-letters", "/dead-letters?dataflow=a", "/dead-letters/causes", "/snapshots", "/observations", "/usage"),
        *("/decisions", "/machines", "/access", "/engine", "/dataflows/a/series", "/dataflows/..%2f..%2fetc%2fpasswd"),
    ):
        yield Attack(f"reads {path}", request("GET", path), READ)


def _as_others() -> Iterator[Attack]:
    for name, token in {"a wrong token": "hg_" + "x" * 40, "a long token": "x" * 60_000, "no text": "\u00e9"}.items():
        headers = {"Authorization": f"Bearer {token}".encode("latin-1")}
        yield Attack(name, request("GET", "/dataflows", team=None, headers=headers))
    yield Attack("no token", request("DELETE", "/dataflows/a", team=None))
    yield Attack("a cookie", request("GET", "/dataflows", team=None, headers={"Cookie": "session=admin; user=root"}))
    for header in ("X-Forwarded-User", "X-Remote-User", "X-Headgate-User"):
        yield Attack(header, request("GET", "/dataflows", team=None, headers={header: "root"}))


def _malformed(folder: str) -> Iterator[Attack]:
    document = json.dumps({"dataflows": [flow(folder, "x")]}).encode()
    bodies: dict[str, tuple[bytes, dict[str, str]]] = {
        "half a body": (document[:-9], {}),
        "no UTF-8": (document.replace(b"mallory", b"\xff\xfe\xc3"), {}),
        "half a character": (document.replace(b"mallory_x", rb"\ud800"), {}),
        "brackets without end": (b"[" * 200_000 + b"]" * 200_000, {}),
        "objects without end": (b'{"dataflows":' * 50_000 + b"1" + b"}" * 50_000, {}),
        "twenty megabytes": (b'{"dataflows": ["' + b"x" * 20_000_000 + b'"]}', {}),
        "a number without end": (b'{"dataflows": ' + b"9" * 1_000_000 + b"}", {}),
        "no number": (b'{"dataflows": NaN, "replace": Infinity}', {}),
        "a bomb of zeros": (gzip.compress(b"0" * 100_000_000), {"Content-Encoding": "gzip"}),
        "YAML in place of JSON": (b"a: &a [x, x]\nb: &b [*a, *a]\n" * 10, {"Content-Type": "application/yaml"}),
        "nothing": (b"", {}),
        "nulls": (b"\0" * 1_000, {}),
    }
    for name, (content, headers) in bodies.items():
        typed = {"Content-Type": "application/json", **headers}
        yield Attack(name, request("POST", "/dataflows", content=content, headers=typed))
    values: dict[str, Any] = {
        "no list": 5,
        "a list of nothing": [None] * 1_000,
        "names as lists": [{"name": ["a"], "owner": "mallory", "tasks": []}],
        "a name that leaves": [{**flow(folder, "x"), "name": "../../state/x"}],
        "a name of control characters": [{**flow(folder, "x"), "name": "\x1b]0;x\x07"}],
        "a name of megabytes": [{**flow(folder, "x"), "name": "x" * 1_000_000}],
        "an owner that leaves": [{**flow(folder, "x"), "owner": "../honest"}],
        "the same twice": [flow(folder, "x"), flow(folder, "x")],
        "a thousand dataflows": [{**flow(folder, "x"), "name": f"mallory_{n}"} for n in range(1_000)],
    }
    for name, value in values.items():
        yield Attack(name, request("POST", "/dataflows", json={"dataflows": value}))
    yield Attack("a request id of megabytes", request("POST", "/dataflows", key="x" * 30_000, content=document))


def _flood(engine: EngineProgram) -> httpx.Response:
    """A thousand requests as fast as one client can."""
    headers = {"Authorization": f"Bearer {engine.tokens['mallory']}"}
    until = time.monotonic() + 4.0
    with httpx.Client(trust_env=False, timeout=30.0, headers=headers) as client:
        for _ in range(1_000):
            answer = client.get(f"{engine.url}/v1/me")
            if answer.status_code >= 500 or time.monotonic() > until:
                break
    return answer


def _slow(engine: EngineProgram) -> httpx.Response:
    """Two hundred connections that send half a request and wait; meanwhile somebody else asks."""
    place = urlsplit(engine.url)
    clients = [socket.create_connection((place.hostname or "", place.port or 0), timeout=5.0) for _ in range(200)]
    try:
        for client in clients:
            client.sendall(b"POST /v1/dataflows HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
        return request("GET", "/dataflows", team="honest")(engine)
    finally:
        for client in clients:
            client.close()
