"""Who may do what through the API: nothing by default, and whose dataflow it is decides the rest."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from headgate.access.authority import AccessRefused
from headgate.access.policy import AccessPolicy
from headgate.access.principal import AccessRole, Principal
from headgate.access.quota import Quota
from headgate.access.rules import TenantRules
from headgate.api.callers import Peer, peer_of, principal_of
from headgate.api.client import EngineClient
from headgate.api.scopes import scope_of
from headgate.api.server import serving
from headgate.service.audit import MOST_BYTES, RefusalLog, audit
from tests.api.fake import FakeEngine
from tests.api.fake_control import fake_control
from tests.api.in_process import ADMIN, InProcess
from tests.api.samples import document

ANA = Principal("ana", AccessRole.SUBMITTER, frozenset({"ana", "city"}), "unix socket, process 7")
VIEWER = Principal("vic", AccessRole.VIEWER, frozenset({"city"}))
BODIES = {
    "/v1/dataflows": {"dataflows": [document("new", owner="city")]},
    "/v1/withdrawals": {"dataflows": ["alarms"]},
    "/v1/tokens": {"name": "t", "role": "viewer"},
    "limit": {"rows": 5},
    "level": {"latency_max_s": 2.0},
    "alternate": {"alternate": "a"},
    "partitions": {"partitions": 2},
    "/v1/policy": {"mode": "auto"},
    "/v1/machines": {"vm_class": "small"},
    "/v1/executors": {"executors": 2},
}
DOCUMENT = ("/v1/openapi.json",)
"""What may be read by whoever can connect: nothing of an engine is in it."""

OPEN = {("GET", "/livez"), ("GET", "/readyz"), ("POST", "/v1/session"), ("DELETE", "/v1/session")}
"""Routes that are for whoever can connect."""

VERBS = {
    "read": AccessRole.VIEWER,
    "inspect": AccessRole.VIEWER,
    "submit": AccessRole.SUBMITTER,
    "change": AccessRole.SUBMITTER,
    "operate": AccessRole.OPERATOR,
    "audit": AccessRole.ADMIN,
    "grant": AccessRole.ADMIN,
}


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    made = FakeEngine(tmp_path)
    admin = InProcess(made)
    for name, owner in (("alarms", "city"), ("delays", "rail")):
        assert admin("POST", "/dataflows", json={"dataflows": [document(name, owner=owner)]}).status_code == 200
    return made


def leaves(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """The routes of an application, also those that it includes."""
    for route in routes:
        included = getattr(route, "original_router", None)
        yield from [route] if included is None else leaves(included.routes)


def routes(client: InProcess) -> list[tuple[str, str]]:
    """All that the API serves, with names put into the paths."""
    kept = [route for route in leaves(client.app.routes) if isinstance(route, APIRoute)]
    places = [(method, route.path) for route in kept for method in sorted(route.methods or ())]
    names = {"{token}": "t", "{task}": "r", "{dataflow}": "alarms", "{number}": "1", "{machine}": "small-1"}
    names |= {"{operation}": "0" * 32}
    return [(method, re.sub(r"{\w+}", lambda each: names[each[0]], path)) for method, path in places]


OF_ALL = ("/v1/audit", "/v1/bill", "/v1/tokens", "/v1/operations", f"/v1/operations/{'0' * 32}")
"""What shows costs or deeds of everybody."""


def ask(client: InProcess, method: str, path: str) -> Any:
    body = BODIES.get(path, BODIES.get(path.rpartition("/")[2]))
    more: dict[str, Any] = {} if body is None or method in ("GET", "DELETE") else {"json": body}
    if path == "/v1/events":
        more = {"headers": {"Last-Event-ID": "none"}}  # refused as such, where a stream would not end
    elif path.endswith("/rows"):
        more = {"params": {"most": 0}}
    return client(method, path.removeprefix("/v1") if path.startswith("/v1/") else f"http://engine{path}", **more)


def test_over_its_quota_an_owner_is_refused_with_the_figure(engine: FakeEngine) -> None:
    rules = TenantRules(quotas={"city": Quota(dataflows=2), "rail": Quota(tasks=5)})
    ask = InProcess(engine, rules=rules)
    one_more = ask("POST", "/dataflows", json={"dataflows": [document("second", owner="city")]})
    assert one_more.status_code == 200
    refused = ask("POST", "/dataflows", json={"dataflows": [document("third", owner="city")]})
    assert (refused.status_code, refused.json()["condition"]) == (422, "QUOTA_EXCEEDED")
    assert "'city' would have 3 dataflows, and may have 2" in refused.json()["detail"]
    refused = ask("POST", "/dataflows", json={"dataflows": [document("more", owner="rail")]})
    assert "'rail' would have 6 tasks, and may have 5" in refused.json()["detail"]
    replaced = {"dataflows": [document("second", where="value > 7", owner="city")], "replace": True}
    assert ask("POST", "/dataflows", json=replaced).status_code == 200, "one that is replaced counts once"
    quotas = {one["owner"]: one for one in ask("GET", "/access").json()["quotas"]}
    assert (quotas["city"]["dataflows"], quotas["city"]["most_dataflows"], quotas["rail"]["tasks"]) == (2, 2, 3)


def conditions(client: InProcess) -> dict[tuple[str, str], str]:
    """How each route that is not open answers."""
    asked = [place for place in routes(client) if place not in OPEN]
    return {place: condition_of(ask(client, *place)) for place in asked}


def condition_of(answer: httpx.Response) -> str:
    return str(answer.json().get("condition", "")) if "json" in answer.headers["content-type"] else ""


def test_what_is_served_is_a_route_that_is_tried_here(engine: FakeEngine) -> None:
    client = InProcess(engine)
    assert len(routes(client)) >= 17
    others = [route for route in leaves(client.app.routes) if not isinstance(route, APIRoute)]
    assert [getattr(route, "path", route) for route in others] == list(DOCUMENT)


def test_every_route_declares_what_it_asks_for(engine: FakeEngine) -> None:
    client = InProcess(engine)
    declared = {
        (method, route.path): scope_of(route)
        for route in leaves(client.app.routes)
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert {place for place, verb in declared.items() if verb == "open"} == OPEN
    assert {verb for place, verb in declared.items() if place not in OPEN} <= set(VERBS)
    changes = {place for place in declared if place[0] != "GET" and place not in OPEN}
    assert {declared[place] for place in changes} <= {"submit", "change", "operate", "grant", "read"}


def test_a_route_without_a_declaration_is_open_to_nobody(engine: FakeEngine) -> None:
    client = InProcess(engine)

    @client.app.get("/v1/forgotten")
    def forgotten() -> dict[str, str]:
        return {}

    refused = client("GET", "/forgotten")
    assert (refused.status_code, refused.json()["condition"]) == (403, "NOT_ALLOWED")
    assert "declares no scope" in refused.json()["detail"]


def test_who_is_unknown_or_has_no_role_is_refused_everywhere(engine: FakeEngine) -> None:
    before = engine.snapshot
    assert set(conditions(InProcess(engine, None)).values()) == {"NOT_AUTHENTICATED"}
    assert set(conditions(InProcess(engine, Principal("eve", teams=frozenset({"city"})))).values()) == {"NOT_ALLOWED"}
    assert engine.snapshot == before


def test_a_viewer_reads_and_changes_nothing(engine: FakeEngine) -> None:
    before = engine.snapshot
    viewer = InProcess(engine, VIEWER, control=fake_control(engine.state.path))
    for (method, path), condition in conditions(viewer).items():
        allowed = method == "GET" and path not in OF_ALL
        assert (condition == "NOT_ALLOWED") is not allowed, (method, path)
    assert engine.snapshot == before


def test_only_members_change_a_dataflow(engine: FakeEngine) -> None:
    ana = InProcess(engine, ANA)
    refused = [
        ana("DELETE", "/dataflows/delays"),
        ana("POST", "/withdrawals", json={"dataflows": ["alarms", "delays"]}),
        ana("POST", "/dataflows/delays/pause"),
        ana("POST", "/dataflows", json={"dataflows": [document("x", owner="rail")]}),
        ana("POST", "/dataflows", json={"dataflows": [document("x")]}),
        ana("POST", "/dataflows", json={"dataflows": [document("delays", "value > 2", owner="city")], "replace": True}),
    ]
    assert {answer.status_code for answer in refused} == {403}
    assert [flow.name for flow in engine.dataflows] == ["alarms", "delays"], "nothing has changed, of alarms neither"
    assert ana("POST", "/dataflows/alarms/pause").status_code == 200
    changed = {"dataflows": [document("alarms", "value > 2", owner="city")], "replace": True}
    assert ana("POST", "/dataflows", json=changed).status_code == 200
    assert ana("DELETE", "/dataflows/alarms").status_code == 200


def test_what_is_set_for_all_takes_the_consent_of_all(engine: FakeEngine) -> None:
    """The source and the filter are shared with a dataflow of another team."""
    ana, operator = InProcess(engine, ANA), InProcess(engine, Principal("olga", AccessRole.OPERATOR))
    body: dict[str, Any] = {"json": {"rows": 1}}
    assert ana("PUT", "/dataflows/alarms/tasks/r/limit", **body).status_code == 403
    assert ana("PUT", "/dataflows/alarms/tasks/w/limit", **body).status_code == 200
    assert operator("PUT", "/dataflows/alarms/tasks/r/limit", **body).status_code == 200


def test_an_answer_is_for_who_asked(engine: FakeEngine) -> None:
    ana, ben = InProcess(engine, ANA), InProcess(engine, Principal("ben", AccessRole.SUBMITTER, frozenset({"city"})))
    first = ana("DELETE", "/dataflows/alarms", "guessed")
    assert first.status_code == 200
    assert ben("DELETE", "/dataflows/alarms", "guessed").json()["condition"] == "REQUEST_ID_REUSED"


def test_reasons_quote_rows_and_are_for_members(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    flows, fragments = engine.status()
    flows = [replace(flow, state="degraded", reason="cannot cast 'secret'") for flow in flows]
    monkeypatch.setattr(engine, "status", lambda: (flows, [replace(fragments[0], failure="cannot cast 'secret'")]))
    seen = InProcess(engine, VIEWER)("GET", "/status").json()
    assert [flow["reason"].startswith("hidden") for flow in seen["dataflows"]] == [False, True]
    assert seen["fragments"][0]["failure"].startswith("hidden")
    assert "hidden" not in InProcess(engine)("GET", "/status").text


def test_every_change_and_refusal_is_in_the_audit(engine: FakeEngine, tmp_path: Path) -> None:
    ana = InProcess(engine, ANA)
    ana("POST", "/dataflows/alarms/pause", "1")
    ana("POST", "/dataflows/alarms/pause", "1")
    ana("DELETE", "/dataflows/delays", "2")
    ana("GET", "/audit")
    ana("POST", "/dataflows", json={"dataflows": [document("x", "no such", owner="city")]})
    entries = [entry for entry in audit(tmp_path) if entry["principal"] == "ana"]
    assert [(entry["action"], entry["outcome"]) for entry in entries] == [
        ("pause", "done"),
        ("DELETE /v1/dataflows/delays", "NOT_ALLOWED"),
        ("GET /v1/audit", "NOT_ALLOWED"),
        ("POST /v1/dataflows", "INVALID_DATAFLOW"),
    ]
    assert entries[0]["objects"] == ("alarms",)
    assert (entries[0]["origin"], entries[0]["role"]) == ("unix socket, process 7", "submitter")
    answer = InProcess(engine)("GET", "/audit", params={"limit": 2}).json()
    assert answer["entries"][-1]["outcome"] == "INVALID_DATAFLOW"


def test_a_flood_of_refusals_does_not_fill_the_disk(tmp_path: Path) -> None:
    log, error = RefusalLog(tmp_path), AccessRefused("NOT_ALLOWED", "x" * 10_000)
    for _ in range(3 * MOST_BYTES // 600):
        log.note(ADMIN, "y" * 10_000, error)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 2 * MOST_BYTES + 1_000
    assert sum(1 for _ in log.read()) > MOST_BYTES // 1_000


def test_the_kernel_says_who_is_at_the_other_end() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with closing(ours), closing(theirs):
        assert peer_of(ours) == Peer(os.getpid(), os.getuid())
    with closing(socket.socket(socket.AF_INET)) as network:
        assert peer_of(network) is None


def test_a_user_of_the_system_is_a_principal() -> None:
    policy = AccessPolicy({"nobody": AccessRole.VIEWER, "uid-54321": AccessRole.OPERATOR})
    assert principal_of(Peer(1, 54321), policy).role is AccessRole.OPERATOR
    assert principal_of(Peer(1, os.getuid()), policy).role is AccessRole.ADMIN
    assert principal_of(Peer(1, 54322), policy).role is AccessRole.NONE


@pytest.fixture
def client(engine: FakeEngine, tmp_path: Path) -> Iterator[EngineClient]:
    with serving(tmp_path, InProcess(engine).app), EngineClient(tmp_path) as made:
        yield made


def test_on_the_socket_who_runs_the_engine_is_its_admin(client: EngineClient) -> None:
    me = client.me()
    assert (me["role"], me["origin"]) == ("admin", f"unix socket, process {os.getpid()}")
    client.pause("delays")
    assert [entry["action"] for entry in client.audit()["entries"]][-1] == "pause"
    answer = client.access()
    assert (answer["roles"], answer["teams"]) == ([], [])
    assert [one["owner"] for one in answer["quotas"]] == ["city", "rail"]
