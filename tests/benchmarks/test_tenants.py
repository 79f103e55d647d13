"""The attacks of ``headgate bench tenants`` that are to be refused are, by an engine that runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.access.principal import AccessRole, Principal
from headgate.api.application import application
from headgate.api.network import listening
from headgate.api.server import serving
from headgate.documents.settings import project_tables
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry
from headgate_benchmarks.tenants.attack import Attack, Expected, request
from headgate_benchmarks.tenants.attacks import QUERIES, dataflow_attacks
from headgate_benchmarks.tenants.neighbours import Neighbours
from headgate_benchmarks.tenants.program import MODULE, SETTINGS
from headgate_benchmarks.tenants.requests import HONEST_KEY, request_attacks
from tests.api.fake import FakeEngine

ADMIN = Principal("root", AccessRole.ADMIN)
BY_SPARK = frozenset(QUERIES)
"""Spark's own parser refuses some of these."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("siege").resolve()
    for name in ("in", "honest", "mallory", "state"):
        (folder / name).mkdir()
    (folder / "state" / "version").write_text("5", encoding="utf-8")
    (folder / "headgate.toml").write_text(SETTINGS.format(module=MODULE), encoding="utf-8")
    rules = project_tables(folder / "headgate.toml").rules()
    served = ServedEngine(FakeEngine(folder / "state"), default_registry(), rules=rules)
    tokens = {
        team: served.tokens.create(ADMIN, team, AccessRole.SUBMITTER, (team,), None)["token"]
        for team in ("honest", "mallory")
    }
    with listening("127.0.0.1:0") as listener, serving(folder / "state", application(served), network=[listener]):
        program = SimpleNamespace(folder=folder, url=listener.url, tokens=tokens)
        body = {"dataflows": Neighbours(folder, 1.0).documents()}
        answer = request("POST", "/dataflows", team="honest", key=HONEST_KEY, json=body)(program)  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        yield program


ATTACKS: list[Attack] = [*request_attacks("FOLDER"), *dataflow_attacks("FOLDER")]


def test_there_are_many() -> None:
    assert len(ATTACKS) >= 60
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("number", range(len(ATTACKS)), ids=[attack.name[:60] for attack in ATTACKS])
def test_what_is_to_be_refused_is(engine: Any, number: int) -> None:
    attack = [*request_attacks(str(engine.folder)), *dataflow_attacks(str(engine.folder))][number]
    if attack.name in BY_SPARK or (attack.dataflow is not None and attack.expected is not Expected.REFUSED):
        pytest.skip("for an engine that runs")
    answer = attack.send(engine)
    assert answer.status_code < 500 or answer.status_code in (501, 503), answer.text[:300]
    assert "Traceback" not in answer.text
    assert "'c0nfidential'" not in answer.text
    if attack.expected is Expected.REFUSED:
        assert answer.is_error, answer.text[:300]
        assert answer.json()["title"] if answer.headers["content-type"].endswith("json") else answer.text
