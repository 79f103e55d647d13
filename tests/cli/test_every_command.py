"""Everything that the command line can do is a route, and what ``--json`` prints is the route's answer."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from headgate.access.principal import AccessRole
from headgate.api.application import application
from headgate.api.client import EngineClient
from headgate.api.network import listening
from headgate.api.requests import ApiRequest
from headgate.api.server import serving
from headgate.billing.journal import BilledMachine, Usage, UsageJournal
from headgate.billing.usage import Customer
from headgate.cli.main import COMMANDS
from headgate.model.names import DataflowName, Owner
from headgate.service.serve import ServedEngine
from headgate.store.observations import ObservationHistory
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.api.fake_control import fake_control
from tests.api.in_process import ADMIN
from tests.api.samples import document
from tests.api.test_contract import DOCUMENT
from tests.cli.terminal import headgate
from tests.store.test_observations import observation

LOCAL = {
    "init": "writes a project into this folder",
    "validate": "reads files of this machine",
    "show": "draws files of this machine",
    "convert": "reads and writes files of this machine",
    "diff": "compares files of this machine",
    "plan": "plans files without an engine; submit --plan asks one",
    "schema": "prints the schema of the format, which belongs to this version",
    "tasks": "lists the task types of this installation",
    "size": "solves a model in a file",
    "simulate": "simulates files of this machine; replay asks an engine for its past",
    "experiment": "simulates many, on the cores of this machine",
    "forecast": "reads series from files of this machine",
    "run": "is an engine",
    "serve": "is a service",
    "traces": "reads traces from files of this machine",
    "bench": "measures this machine",
    "cluster": "starts processes on this machine",
    "dev": "starts processes on this machine",
}
"""Commands that no route has, and why."""


CALLS: dict[str, list[tuple[str, ...]]] = {
    "submit": [("submit", "FILE", "--json")],
    "status": [("status", "--json"), ("status", "wide", "--json")],
    "list": [("list", "--json")],
    "whoami": [("whoami", "--json")],
    "access": [("access", "--json"), ("access", "--audit", "--json")],
    "token": [("token", "create", "t", "--json"), ("token", "list", "--json"), ("token", "revoke", "t", "--json")],
    "switch": [("switch", "wide", "f", "a", "--json"), ("switch", "wide", "f", "--release", "--json")],
    "pause": [("pause", "wide", "--json")],
    "resume": [("resume", "wide", "--json")],
    "redrive": [("redrive", "wide", "f", "--json")],
    "limit": [("limit", "wide", "r", "5", "--json")],
    "partitions": [("partitions", "wide", "f", "2", "--json")],
    "level": [("level", "wide", "--latency", "2s", "--json")],
    "policy": [("policy", "--json")],
    "decisions": [("decisions", "--json")],
    "why": [("why", "1", "--json")],
    "machines": [
        ("machines", "--json"),
        ("machines", "acquire", "small", "--json"),
        ("machines", "release", "MACHINE", "--json"),
    ],
    "scale": [("scale", "2", "--json")],
    "bill": [("bill", "--format", "json")],
    "observations": [("observations", "--json")],
    "dead-letters": [("dead-letters", "--json")],
    "lineage": [("lineage", "wide.f.value", "--json")],
    "tail": [("tail", "wide.f", "--samples", "1", "--json")],
    "withdraw": [("withdraw", "wide", "narrow", "--json")],
}
"""Commands that ask an engine, in an order in which they can be asked."""

OWN_FORM = {
    "top": "computes its tables from what /v1/observations answers",
    "recommend": "tests/service/test_operations.py and tests/cli/test_replay_policies.py: a fake engine has no past",
    "profile": "computes from what /v1/observations answers, or from files",
    "deploy": "a plan is computed here; with an engine it asks /v1/machines and others: tests/cli/test_deploy.py",
    "replay": "tests/service/test_operations.py: the result of its operation is what the command prints",
}
"""Commands that ask an engine too, and where they are held against it."""


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    (tmp_path / "version").write_text("5", encoding="utf-8")
    ObservationHistory(tmp_path / "observations").append(observation(time.time()))
    made = FakeEngine(tmp_path)
    journal, now = UsageJournal(made.journal), int(time.time())
    flow = DataflowName("wide")
    machine = BilledMachine("local", Decimal(1), {(flow,): 3})
    journal.changed(now - 100, Usage((machine,), (Customer(flow, Owner("ana"), 3),)))
    journal.ended(now)
    return made


@pytest.fixture
def service(engine: FakeEngine) -> Iterator[ServedEngine]:
    """A service to which the command line is pointed, with a controller that has decided things."""
    state = engine.state.path
    served = ServedEngine(engine, default_registry(), control=fake_control(state))
    token = served.tokens.create(ADMIN, "boss", AccessRole.ADMIN, (), None)["token"]
    with ExitStack() as stack:
        network = stack.enter_context(listening("127.0.0.1:0"))
        stack.enter_context(serving(state, application(served), network=[network]))
        place = {"HEADGATE_URL": network.url, "HEADGATE_TOKEN": str(token)}
        stack.enter_context(mock.patch.dict(os.environ, place))
        yield served


class Answers:
    """What the service has answered to a command."""

    def __init__(self) -> None:
        self.seen: list[tuple[ApiRequest, Any]] = []

    def noting(self, send: Callable[[EngineClient, ApiRequest], Any]) -> Callable[[EngineClient, ApiRequest], Any]:
        def noted(client: EngineClient, request: ApiRequest) -> Any:
            answer = send(client, request)
            self.seen.append((request, json.loads(json.dumps(answer))))
            return answer

        return noted


def test_every_command_is_a_route_or_says_why_not() -> None:
    known = [set(LOCAL), set(CALLS), set(OWN_FORM)]
    assert set.union(*known) == set(COMMANDS)
    assert sum(map(len, known)) == len(COMMANDS), "each is in one table"


def test_what_json_prints_is_what_the_route_answers(service: ServedEngine, engine: FakeEngine, tmp_path: Path) -> None:
    for name, where in (("wide", "value > 1"), ("narrow", "value > 5")):
        (tmp_path / f"{name}.json").write_text(json.dumps(document(name, where)), encoding="utf-8")
    machine = service.control_for(ADMIN).machines()["machines"][0]["name"]
    places = {"FILE": str(tmp_path / "wide.json"), "MACHINE": machine}
    assert headgate("submit", tmp_path / "narrow.json").status == 0
    ended = threading.Event()
    threading.Thread(target=_show_rows, args=(engine, ended), daemon=True).start()
    used: set[tuple[str, str]] = set()
    for calls in CALLS.values():
        for words in calls:
            answers = Answers()
            with mock.patch.object(EngineClient, "send", answers.noting(EngineClient.send)):
                ran = headgate(*(places.get(word, word) for word in words))
            assert ran.status == 0, (words, ran.err)
            used |= {(request.method.lower(), _template(request.path)) for request, _ in answers.seen}
            if words[0] == "tail":
                assert ran.json["rows"] == [{"value": 7}]
            elif words[0] == "observations":
                first = answers.seen[0][1]
                assert [json.loads(line) for line in ran.out.splitlines()] == first["observations"]
            else:
                assert ran.json == answers.seen[-1][1], words
    ended.set()
    documented = {(method, path) for path, item in DOCUMENT["paths"].items() for method in item}
    assert used <= documented
    assert len(used) >= 25


def _show_rows(engine: FakeEngine, ended: threading.Event) -> None:
    """Show rows of a task to whoever looks."""
    while not ended.wait(0.05):
        for viewer in list(engine.viewers):
            viewer(['{"value": 7}'])


def _template(path: str) -> str:
    """A path as the document has it."""
    for known in DOCUMENT["paths"]:
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(known)), f"/v1{path}"):
            return str(known)
    return path
