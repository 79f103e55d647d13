"""Live rows are for who may inspect the dataflow, with masked columns hidden, for as long as somebody looks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from headgate.access.principal import AccessRole
from headgate.access.rules import TenantRules
from headgate.api.application import application
from headgate.api.client import EngineClient
from headgate.api.network import listening
from headgate.api.server import serving
from headgate.errors import HeadgateError
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.api.in_process import ADMIN
from tests.api.samples import document
from tests.runtime.small import wait_for

ROW = '{"id": 1, "who": {"eMail": "a@b.c", "age": 7}}'
ROLES = {"boss": (AccessRole.ADMIN, ""), "ana": (AccessRole.VIEWER, "city"), "eve": (AccessRole.VIEWER, "rail")}


@contextmanager
def service(engine: FakeEngine) -> Iterator[dict[str, EngineClient]]:
    """A service with clients of several roles."""
    served = ServedEngine(engine, default_registry(), rules=TenantRules(masked=("*mail*",)))
    tokens = {
        name: str(served.tokens.create(ADMIN, name, role, (team,) if team else (), None)["token"])
        for name, (role, team) in ROLES.items()
    }
    app, state = application(served), engine.state.path
    with listening("127.0.0.1:0") as network, serving(state, app, network=[network]), closing(served):
        yield {name: EngineClient.at(network.url, token) for name, token in tokens.items()}


def test_rows_are_for_some_and_masked(tmp_path: Path) -> None:
    engine, ended = FakeEngine(tmp_path), threading.Event()

    def show() -> None:
        while not ended.wait(0.02):
            for viewer in list(engine.viewers):
                viewer([ROW])

    threading.Thread(target=show, daemon=True).start()
    try:
        with service(engine) as clients:
            clients["boss"].submit([document("wide", owner="city")])
            (seen,) = clients["boss"].rows("wide", "f", most=1)
            assert seen["rows"] == [{"id": 1, "who": {"eMail": "a@b.c", "age": 7}}]
            first, second = clients["ana"].rows("wide", "f", most=2)
            assert first["rows"] == second["rows"] == [{"id": 1, "who": {"eMail": "•••", "age": 7}}]
            assert second["at"] >= first["at"]
            with pytest.raises(HeadgateError, match="may not"):
                next(clients["eve"].rows("wide", "f"))
            with pytest.raises(HeadgateError, match="no task 'q'"):
                next(clients["ana"].rows("wide", "q"))
            with pytest.raises(HeadgateError, match="no dataflow 'none'"):
                next(clients["ana"].rows("none", "q"))
            wait_for(lambda: not engine.viewers, "nobody looks any more")
    finally:
        ended.set()


def test_who_looks_is_told_when_the_engine_stops(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path)
    with service(engine) as clients:
        clients["boss"].submit([document("wide", owner="city")])
        rows: list[object] = []
        looking = threading.Thread(target=lambda: rows.extend(clients["boss"].rows("wide", "f")), daemon=True)
        looking.start()
        wait_for(lambda: engine.viewers, "somebody looks")
    looking.join(20)
    assert not looking.is_alive()
    assert rows == []
