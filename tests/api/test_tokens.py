"""Access over the network: tokens, sign-in, foreign pages, limits; and that no secret is kept."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from headgate.access.principal import AccessRole, Principal
from headgate.api.application import Door, application
from headgate.api.sessions import COOKIE, Sessions
from headgate.errors import InputError
from headgate.service.audit import audit
from headgate.service.serve import ServedEngine
from headgate.service.tokens import PREFIX, Tokens
from headgate.store.entries import TokenStored
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.api.samples import document

ADMIN = Principal("root", AccessRole.ADMIN, origin="here")


class Network:
    """Requests as they come from the network: nothing is known of who sends them."""

    def __init__(self, engine: FakeEngine, door: Door | None = None) -> None:
        self.served = ServedEngine(engine, default_registry())
        self.app = application(self.served, door)

    def token(self, name: str, role: AccessRole, *teams: str, life_s: float | None = None) -> str:
        return str(self.served.tokens.create(ADMIN, name, role, teams, life_s)["token"])

    def __call__(
        self, method: str, path: str, token: str | None = None, scheme: str = "http", **more: Any
    ) -> httpx.Response:
        headers = {**({} if token is None else {"Authorization": f"Bearer {token}"}), **more.pop("headers", {})}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=("192.0.2.7", 1))
            async with httpx.AsyncClient(transport=transport, base_url=f"{scheme}://service") as client:
                return await client.request(method, path, headers=headers, **more)

        return asyncio.run(send())


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    return FakeEngine(tmp_path)


@pytest.fixture
def network(engine: FakeEngine) -> Network:
    return Network(engine)


def condition(answer: httpx.Response) -> str:
    return str(answer.json().get("condition"))


def test_a_token_says_who_asks_and_for_whom(network: Network, engine: FakeEngine, tmp_path: Path) -> None:
    ana = network.token("ana", AccessRole.SUBMITTER, "city")
    me = network("GET", "/v1/me", ana).json()
    assert (me["name"], me["role"], me["teams"], me["origin"]) == ("ana", "submitter", ["city"], "token, 192.0.2.7")
    body = {"dataflows": [document("mine", owner="city")]}
    assert network("POST", "/v1/dataflows", ana, json=body).status_code == 200
    body = {"dataflows": [document("others", owner="rail")]}
    assert condition(network("POST", "/v1/dataflows", ana, json=body)) == "NOT_ALLOWED"
    assert [flow.name for flow in engine.dataflows] == ["mine"]
    last = audit(tmp_path)[-1]
    assert (last["principal"], last["origin"], last["outcome"]) == ("ana", "token, 192.0.2.7", "NOT_ALLOWED")


def test_without_a_token_that_holds_nobody_gets_in(network: Network, tmp_path: Path) -> None:
    short = network.token("short", AccessRole.ADMIN, life_s=3_600.0)
    assert network("GET", "/v1/status", short).status_code == 200
    for wrong in (None, "", short[:-1], short + "x", "hg_", "root", short.upper()):
        answer = network("GET", "/v1/status", wrong)
        assert (answer.status_code, condition(answer)) == (401, "NOT_AUTHENTICATED")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert audit(tmp_path)[-1]["principal"] == "nobody"
    assert audit(tmp_path)[-1]["origin"] == "192.0.2.7"
    network.served.tokens.revoke(ADMIN, "short")
    assert network("GET", "/v1/status", short).status_code == 401


def test_a_token_expires(engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, now = Network(engine), time.time()
    token = network.token("brief", AccessRole.VIEWER, life_s=60.0)
    monkeypatch.setattr("headgate.service.tokens.time.time", lambda: now + 59.0)
    assert network("GET", "/v1/me", token).status_code == 200
    monkeypatch.setattr("headgate.service.tokens.time.time", lambda: now + 61.0)
    assert network("GET", "/v1/me", token).status_code == 401


def test_no_secret_is_kept_and_tokens_outlive_the_engine(network: Network, engine: FakeEngine, tmp_path: Path) -> None:
    token = network.token("ci", AccessRole.OPERATOR)
    made = network("POST", "/v1/tokens", token, json={"name": "more", "role": "viewer"})
    assert condition(made) == "NOT_ALLOWED", "an operator grants nothing"
    admin = network.token("boss", AccessRole.ADMIN)
    made = network("POST", "/v1/tokens", admin, json={"name": "more", "role": "viewer", "teams": ["city"]}).json()
    assert made["token"].startswith(PREFIX)
    assert len(made["token"]) > 40
    network("GET", "/v1/me", made["token"])
    everything = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for secret in (token, admin, made["token"]):
        assert secret.encode() not in everything
        assert secret.removeprefix(PREFIX).encode() not in everything
    again = Network(FakeEngine(tmp_path))
    assert again("GET", "/v1/me", made["token"]).json()["name"] == "more"
    listed = {one["name"]: one for one in again("GET", "/v1/tokens", admin).json()["tokens"]}
    assert set(listed) == {"ci", "boss", "more"}
    assert listed["more"]["last_used_at"] is not None
    assert all("token" not in one for one in listed.values())
    assert again("DELETE", "/v1/tokens/more", admin).status_code == 200
    third = Network(FakeEngine(tmp_path))
    assert third("GET", "/v1/me", made["token"]).status_code == 401
    assert condition(third("DELETE", "/v1/tokens/mure", admin)) == "UNKNOWN_TOKEN"
    assert [entry.revoked for entry in engine.journal.every(TokenStored)].count(True) == 0


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"name": "a b", "role": "viewer"}, "BAD_TOKEN"),
        ({"name": "x", "role": "viewer", "teams": ["a/b"]}, "BAD_TOKEN"),
        ({"name": "x", "role": "viewer", "expires_in_s": 0}, "BAD_TOKEN"),
        ({"name": "x", "role": "none"}, "BAD_REQUEST"),
        ({"name": "x", "role": "king"}, "BAD_REQUEST"),
        ({"name": "boss", "role": "viewer"}, "TOKEN_EXISTS"),
    ],
)
def test_a_token_that_cannot_be_is_refused(network: Network, body: dict[str, Any], wrong: str) -> None:
    boss = network.token("boss", AccessRole.ADMIN)
    assert condition(network("POST", "/v1/tokens", boss, json=body)) == wrong
    assert len(network.served.tokens.listing(ADMIN)["tokens"]) == 1


def signed_in(network: Network, token: str, scheme: str = "http") -> str:
    answer = network("POST", "/v1/session", json={"token": token}, scheme=scheme)
    assert answer.status_code == 200, answer.text
    attributes = answer.headers["set-cookie"].lower()
    assert "httponly" in attributes
    assert "samesite=strict" in attributes
    assert ("secure" in attributes) is (scheme == "https")
    assert token not in answer.headers["set-cookie"]
    cookie: str = answer.cookies[COOKIE]
    return cookie


def test_a_browser_signs_in_once(network: Network) -> None:
    token = network.token("ana", AccessRole.SUBMITTER, "city")
    cookie = signed_in(network, token, "https")
    with_cookie = {"Cookie": f"{COOKIE}={cookie}"}
    assert network("GET", "/v1/me", headers=with_cookie).json()["name"] == "ana"
    for forged in (cookie[:-1] + ("0" if cookie[-1] != "0" else "1"), "x", "", f"{'0' * 64}.9999999999.{'0' * 64}"):
        assert network("GET", "/v1/me", headers={"Cookie": f"{COOKIE}={forged}"}).status_code == 401
    assert "max-age=0" in network("DELETE", "/v1/session").headers["set-cookie"].lower()
    network.served.tokens.revoke(ADMIN, "ana")
    assert network("GET", "/v1/me", headers=with_cookie).status_code == 401, "with the token its sessions end"
    assert network("POST", "/v1/session", json={"token": "hg_no"}).status_code == 401


def test_a_session_outlives_an_engine_and_not_the_service(engine: FakeEngine, tmp_path: Path) -> None:
    door = Door(Sessions())
    first = Network(engine, door)
    headers = {"Cookie": f"{COOKIE}={signed_in(first, first.token('ana', AccessRole.VIEWER))}"}
    assert Network(FakeEngine(tmp_path), door)("GET", "/v1/me", headers=headers).status_code == 200
    assert Network(FakeEngine(tmp_path))("GET", "/v1/me", headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Origin": "http://service"}, True),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://service"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Origin": "http://elsewhere"}, False),
        ({"Origin": "null"}, False),
        ({}, False),
    ],
)
def test_only_our_own_page_changes_something_with_a_cookie(
    network: Network, headers: dict[str, str], allowed: bool
) -> None:
    cookie = {"Cookie": f"{COOKIE}={signed_in(network, network.token('ana', AccessRole.OPERATOR, 'city'))}"}
    body = {"dataflows": [document("mine", owner="city")]}
    answer = network("POST", "/v1/dataflows", headers={**cookie, **headers}, json=body)
    assert (answer.status_code == 200) is allowed
    assert allowed or condition(answer) == "FOREIGN_PAGE"
    assert network("GET", "/v1/status", headers={**cookie, **headers}).status_code == 200, "reading is no change"


def test_who_asks_too_often_waits(engine: FakeEngine) -> None:
    network = Network(engine, replace(Door(), requests_per_s=2.0))
    ana, ben = network.token("ana", AccessRole.VIEWER), network.token("ben", AccessRole.VIEWER)
    answers = [network("GET", "/v1/me", ana) for _ in range(8)]
    assert answers[0].status_code == 200
    assert condition(answers[-1]) == "TOO_MANY_REQUESTS"
    assert (answers[-1].status_code, answers[-1].headers["retry-after"]) == (429, "1")
    assert network("GET", "/v1/me", ben).status_code == 200


def test_guessing_tokens_is_slow(network: Network) -> None:
    good = network.token("ana", AccessRole.VIEWER)
    statuses = [network("GET", "/v1/me", f"hg_{number}").status_code for number in range(30)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert network("GET", "/v1/me", good).status_code == 429, "not from there, for a while"


def test_answers_tell_browsers_to_load_nothing_from_elsewhere(network: Network) -> None:
    for path, status in (("/", 200), ("/v1/me", 401), ("/nothing.js", 404)):
        answer = network("GET", path)
        assert answer.status_code == status
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert network("GET", "/v1/me").headers["cache-control"] == "no-store"


def test_tokens_are_few(engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.service.tokens.MOST_TOKENS", 1)
    tokens = Tokens(engine.journal, tmp_path)
    tokens.create(ADMIN, "one", AccessRole.VIEWER, (), None)
    with pytest.raises(InputError, match="revoke"):
        tokens.create(ADMIN, "two", AccessRole.VIEWER, (), None)
