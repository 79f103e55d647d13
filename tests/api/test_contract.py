"""Every answer of the API is what the checked-in OpenAPI document says, and every error has its status."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from headgate.api.problems import STATUSES, error_of, problem_of
from headgate.billing.journal import BilledMachine, Usage, UsageJournal
from headgate.billing.usage import Customer
from headgate.errors import Fault, HeadgateError, Infeasible, InputError, InvalidDataflow, Place
from headgate.model.names import DataflowName, Owner
from headgate.store.observations import ObservationHistory
from tests.api.fake import FakeEngine
from tests.api.fake_control import fake_control
from tests.api.in_process import InProcess
from tests.api.samples import document
from tests.store.test_observations import observation

DOCUMENT = json.loads(
    (Path(__file__).parents[2] / "docs" / "reference" / "openapi.json").read_text(encoding="utf-8")
)  # tests/docs checks that it is current

ROWS = "/v1/dataflows/{dataflow}/tasks/{task}/rows"
NOT_JSON = {("get", "/metrics"), ("get", "/v1/events"), ("get", ROWS)}
"""Have tests of their own."""


class Contract:
    """Sends requests, and holds each answer against the document."""

    def __init__(self, engine: FakeEngine) -> None:
        self.send = InProcess(engine, control=fake_control(engine.state.path))
        self.covered: set[tuple[str, str]] = set()

    def __call__(self, method: str, path: str, *arguments: str, status: int = 200, **more: Any) -> Any:
        where = path.format(*arguments)
        place = where.removeprefix("/v1") if where.startswith("/v1/") else f"http://engine{where}"
        answer = self.send(method, place, **more)
        assert answer.status_code == status, answer.text
        operation = DOCUMENT["paths"][_template(path)][method.lower()]
        self._check(answer, operation)
        if status < 300:
            self.covered.add((method.lower(), _template(path)))
        return answer.json() if answer.content else None

    def _check(self, answer: httpx.Response, operation: dict[str, Any]) -> None:
        responses = operation["responses"]
        if answer.status_code == 204:
            assert "204" in responses
            return
        content = responses.get(str(answer.status_code), responses["default"])["content"]
        schema = content[answer.headers["content-type"]]["schema"]
        whole = {**schema, "components": DOCUMENT["components"]}
        jsonschema.validate(answer.json(), whole, jsonschema.Draft202012Validator)


def _template(path: str) -> str:
    for kind, name in (("decisions", "{number}"), ("machines", "{machine}"), ("operations", "{operation}")):
        if path.startswith(f"/v1/{kind}/"):
            return f"/v1/{kind}/{name}"
    parts = iter(["{token}"] if path.startswith("/v1/tokens") else ["{dataflow}", "{task}"])
    return "/".join(next(parts) if part == "{}" else part for part in path.split("/"))


@pytest.fixture
def contract(tmp_path: Path) -> Contract:
    (tmp_path / "version").write_text("3", encoding="utf-8")
    ObservationHistory(tmp_path / "observations").append(observation(time.time()))
    engine, flow = FakeEngine(tmp_path), DataflowName("wide")
    journal = UsageJournal(engine.journal)
    customer = Customer(flow, Owner("ana"), 3)
    now = int(time.time())
    journal.changed(now - 100, Usage((BilledMachine("local", Decimal(1), {(flow,): 3}),), (customer,)))
    journal.ended(now)
    return Contract(engine)


def test_every_operation_answers_as_the_document_says(contract: Contract) -> None:
    flows = [document("wide"), document("narrow", "value > 5")]
    submitted = contract("POST", "/v1/dataflows", json={"dataflows": flows})
    assert submitted["submitted"][1]["wider"]
    contract("GET", "/v1/engine")
    assert contract("GET", "/v1/me")["role"] == "admin"
    contract("GET", "/v1/access")
    assert contract("GET", "/v1/version")["api"] == "1"
    assert contract("GET", "/livez")["ready"]
    assert contract("GET", "/readyz")["checks"]
    token = contract("POST", "/v1/tokens", json={"name": "t", "role": "viewer"})["token"]
    assert contract("GET", "/v1/tokens")["tokens"][0]["name"] == "t"
    assert contract("POST", "/v1/session", json={"token": token})["name"] == "t"
    contract("DELETE", "/v1/session", status=204)
    contract("DELETE", "/v1/tokens/{}", "t")
    assert contract("GET", "/v1/dead-letters") == {"dead_letters": []}
    span = {"start": time.time() - 60, "end": time.time() + 60, "resolution": 30}
    assert contract("GET", "/v1/history", params=span)["observations"][0]["tasks"]
    assert contract("GET", "/v1/audit")["entries"][-1]["objects"] == ["t"]
    contract("GET", "/v1/dataflows")
    contract("GET", "/v1/dataflows/{}", "wide")
    assert contract("GET", "/v1/status")["fragments"]
    assert contract("GET", "/v1/observations", params={"limit": 10})["observations"][0]["tasks"]
    assert contract("GET", "/v1/bill")["dataflows"]
    _pages(contract)
    for action in ("pause", "resume"):
        contract("POST", f"/v1/dataflows/{{}}/{action}", "wide")
    for setting, body in {
        "limit": {"rows": 5},
        "alternate": {"alternate": "a"},
        "partitions": {"partitions": 2},
        "places": {"machines": ["small-1"]},
    }.items():
        contract("PUT", f"/v1/dataflows/{{}}/tasks/{{}}/{setting}", "wide", "f", json=body)
    contract("PATCH", "/v1/dataflows/{}/level", "wide", json={"latency_max_s": 2.0, "budget_per_h": "0.5"})
    contract("DELETE", "/v1/dataflows/{}/level", "wide")
    contract("POST", "/v1/dataflows/{}/tasks/{}/release", "wide", "f")
    assert contract("POST", "/v1/dataflows/{}/tasks/{}/redrive", "wide", "f")["refused"] == 1
    assert contract("DELETE", "/v1/dataflows/{}", "wide")["withdrawn"][0]["left"]
    contract("POST", "/v1/withdrawals", json={"dataflows": ["narrow"]})
    assert contract("GET", "/v1/policy")["last"]["demand"] > 0
    assert contract("PUT", "/v1/policy", json={"mode": "recommend", "budget_per_h": 0.4})["policy"] == "threshold"
    decided = contract("GET", "/v1/decisions")["decisions"]
    assert contract("GET", f"/v1/decisions/{decided[0]['number']}", params={"again": True})["again"]["same"]
    assert contract("POST", "/v1/machines", json={"vm_class": "small"})["state"] == "starting"
    name = contract("GET", "/v1/machines")["machines"][0]["name"]
    contract("DELETE", f"/v1/machines/{name}")
    contract("PUT", "/v1/executors", json={"executors": 2})
    question = {"policies": ["ds2"], "since": 0, "until": 1}
    begun = contract("POST", "/v1/what-ifs", status=202, json=question)
    name = begun["id"]
    assert contract("GET", "/v1/operations")["operations"][0]["id"] == name
    assert contract("GET", f"/v1/operations/{name}")["question"]["policies"] == ["ds2"]
    assert contract("DELETE", f"/v1/operations/{name}")["state"] in ("cancelled", "failed")
    contract("GET", "/v1/recommendation", status=422)  # of a fake engine nothing is recorded
    contract.covered.add(("get", "/v1/recommendation"))
    assert contract.covered | NOT_JSON == {
        (method, path) for path, item in DOCUMENT["paths"].items() for method in item
    }


def _pages(contract: Contract) -> None:
    """What the console asks for."""
    assert [row["name"] for row in contract("GET", "/v1/overview")["dataflows"]] == ["wide", "narrow"]
    assert len(contract("GET", "/v1/graph")["nodes"]) == 5
    assert contract("GET", "/v1/graph/rates")["bottleneck"]["sentence"]
    assert contract("GET", "/v1/snapshots")["snapshots"][0]["objects"] == ["wide", "narrow"]
    assert contract("GET", "/v1/dataflows/{}/tasks/{}", "wide", "f")["sharers"]
    assert contract("GET", "/v1/dataflows/{}/series", "wide")["dataflow"] == "wide"
    assert contract("GET", "/v1/usage")["fragments"]
    assert contract("GET", "/v1/lineage", params={"of": "wide.f.value"})["hurt"]
    text = json.dumps(document("third", "value > 7"))
    assert contract("POST", "/v1/plans", json={"text": text, "format": "json"})["tasks_after"] == 7
    assert contract("GET", "/v1/bill/dataflows/{}", "wide")["lines"]
    assert contract("GET", "/v1/dead-letters/causes")["causes"] == []


def test_a_change_that_was_planned_for_another_snapshot_is_refused(contract: Contract) -> None:
    text = json.dumps(document("wide"))
    planned = contract.send("POST", "/plans", json={"text": text, "format": "json"})
    assert planned.headers["etag"] == '"plan-0"'
    body = {"dataflows": planned.json()["documents"]}
    assert contract.send("POST", "/dataflows", json={"dataflows": [document("other")]}).status_code == 200
    stale = contract.send("POST", "/dataflows", json=body, headers={"If-Match": '"plan-0"'})
    assert (stale.status_code, stale.json()["condition"]) == (412, "PLAN_STALE")
    assert [flow["name"] for flow in contract.send("GET", "/dataflows").json()["dataflows"]] == ["other"]
    assert contract.send("POST", "/dataflows", json=body, headers={"If-Match": '"plan-1"'}).status_code == 200
    contract("GET", "/v1/graph", status=404, params={"snapshot": 99})
    contract("GET", "/v1/graph", status=404, params={"select": "wode"})


def test_every_refusal_is_a_problem_document(contract: Contract) -> None:
    faulty = contract("POST", "/v1/dataflows", status=422, json={"dataflows": [document("a", "x > 1 and y > 1")]})
    assert [fault["condition"] for fault in faulty["errors"]] == ["COLUMNS_DO_NOT_FIT"] * 2
    missing = contract("POST", "/v1/dataflows", status=400, json={"replace": 5, "more": 1})
    assert len(missing["errors"]) == 3, "all that is wrong at once"
    contract("POST", "/v1/withdrawals", status=400, json={"dataflows": []})
    contract("PATCH", "/v1/dataflows/{}/level", "none", status=404, json={"latency_max_s": 2.0})
    contract("POST", "/v1/withdrawals", status=404, json={"dataflows": ["none"]})
    contract("DELETE", "/v1/dataflows/{}", "none", status=404)
    contract("GET", "/v1/dataflows/{}", "none", status=404)
    contract("GET", "/v1/observations", status=400, params={"limit": 0})
    contract("GET", "/v1/bill", status=404, params={"owner": "nobody"})
    contract("POST", "/v1/dataflows", json={"dataflows": [document("wide")]})
    contract("PUT", "/v1/dataflows/{}/tasks/{}/limit", "wide", "r", status=422, json={"rows": 0})
    for method, path, status, condition in [
        ("GET", "/none", 404, "UNKNOWN_ROUTE"),
        ("PATCH", "/dataflows", 405, "METHOD_NOT_ALLOWED"),
    ]:
        answer = contract.send(method, path)
        assert (answer.status_code, answer.json()["condition"]) == (status, condition)


FAULTS = [
    Fault("UNKNOWN_TASK_TYPE", "unknown task type 'fliter'", Place("f.yaml", 4, 2), "clean", "a type", "filter"),
    Fault("NO_TASKS", "a dataflow without tasks"),
]


@pytest.mark.parametrize(
    "error",
    [
        InputError("UNKNOWN_DATAFLOW", "no dataflow 'a'", {"dataflow": "a", "nearest": None}),
        InputError("NEVER_SEEN", "a condition that the table lacks"),
        InputError("ENGINE_STOPPED", "the engine is being stopped"),
        HeadgateError("INTERNAL", "internal error"),
        InvalidDataflow(FAULTS),
    ],
    ids=lambda error: error.condition,
)
def test_an_error_comes_back_as_the_same_error(error: HeadgateError) -> None:
    back = error_of(json.loads(json.dumps(problem_of(error))))
    assert type(back) is type(error)
    assert (back.condition, back.message, back.parameters) == (error.condition, error.message, error.parameters)
    assert isinstance(error, InvalidDataflow) == isinstance(back, InvalidDataflow)
    if isinstance(error, InvalidDataflow) and isinstance(back, InvalidDataflow):
        assert back.faults == error.faults


def test_statuses_follow_who_can_mend_it() -> None:
    assert problem_of(InputError("NEVER_SEEN", "m"))["status"] == 422
    assert problem_of(Infeasible("NEVER_SEEN", "m"))["status"] == 422
    assert problem_of(HeadgateError("NEVER_SEEN", "m"))["status"] == 500
    assert set(STATUSES.values()) <= {400, 401, 403, 404, 405, 408, 409, 412, 413, 429, 503, 507}
