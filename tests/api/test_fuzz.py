"""Whatever is sent, nothing fails inside, and every answer is as the document says; for each role."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase

from headgate.access.principal import AccessRole
from headgate.api.application import Door
from headgate.api.rate_limits import RateLimit
from tests.api.fake import FakeEngine
from tests.api.samples import document
from tests.api.test_contract import DOCUMENT
from tests.api.test_tokens import ADMIN, Network

ROLES = [role for role in AccessRole if role is not AccessRole.NONE]
ENDLESS = ("/v1/events", "/v1/dataflows/{dataflow}/tasks/{task}/rows")
"""Streams do not end; tests/api/test_events.py has them."""

EXPECTED = {200, 202, 204, 400, 401, 403, 404, 405, 409, 412, 413, 422, 429, 501, 503}


def operations() -> list[Any]:
    # Schemathesis knows 3.1; 3.2 adds the description of streams only.
    schema = schemathesis.openapi.from_dict({**DOCUMENT, "openapi": "3.1.0"})
    found: list[Any] = list(schema.get_all_operations())
    return [one.ok() for one in found if one.ok().path not in ENDLESS]


def checked(answer: Any, method: str, path: str) -> None:
    """Hold an answer against the document."""
    assert answer.status_code in EXPECTED, (method, path, answer.status_code, answer.text[:500])
    responses = DOCUMENT["paths"][path][method]["responses"]
    described = responses.get(str(answer.status_code), responses["default"])
    if not answer.content or "content" not in described:
        return
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in described["content"], (method, path, kind)
    if "json" in kind:
        schema = {**described["content"][kind]["schema"], "components": DOCUMENT["components"]}
        jsonschema.validate(json.loads(answer.content), schema, jsonschema.Draft202012Validator)


def fuzz(network: Network, token: str, cases: int, seed: int) -> Counter[int]:
    """Send cases to every operation; returns how often each status came."""
    statuses: Counter[int] = Counter()
    all_operations = operations()
    for operation in all_operations:

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=max(cases // len(all_operations), 1),
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def send(case: Any) -> None:
            headers = {str(name): str(value) for name, value in (case.headers or {}).items()}
            body: dict[str, Any] = (
                {} if not isinstance(case.body, dict | list | str | int | float | None) else {"json": case.body}
            )
            answer = network(
                case.method, case.formatted_path, token, headers=headers, params=dict(case.query or {}), **body
            )
            statuses[answer.status_code] += 1
            checked(answer, case.method.lower(), case.operation.path)

        send()
    return statuses


def service(folder: Path) -> Network:
    (folder / "version").write_text("6", encoding="utf-8")
    network = Network(FakeEngine(folder), Door(requests_per_s=1e9))
    network.app.state.identities._failures = RateLimit(1e9, 1e9)  # wrong tokens at sign-in are part of what is sent
    token = network.token("maker", AccessRole.ADMIN)
    body = {"dataflows": [document("mine", owner="city"), document("other", "value > 2", owner="rail")]}
    assert network("POST", "/v1/dataflows", token, json=body).status_code == 200
    return network


@pytest.mark.parametrize("role", ROLES)
def test_a_sample_of_what_may_be_sent(role: AccessRole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network = service(tmp_path)
    statuses = fuzz(network, network.token("fuzzer", role, "city"), cases=80, seed=1)
    assert sum(statuses.values()) >= 40
    assert statuses[429] == 0
    assert (statuses[403] == 0) is (role is AccessRole.ADMIN), statuses


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("role", ROLES)
def test_ten_thousand_cases(role: AccessRole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network = service(tmp_path)
    cases = int(os.environ.get("HEADGATE_FUZZ_CASES", "2500"))
    statuses = fuzz(network, network.token("fuzzer", role, "city"), cases, seed=2)
    print(role.value, dict(sorted(statuses.items())))
    assert network.served.tokens.listing(ADMIN)
