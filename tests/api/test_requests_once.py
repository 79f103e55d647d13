"""A request id makes a change happen once, whatever is killed and however often it is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.service.serve import ServedEngine
from headgate.service.submit import submit
from headgate.service.withdraw import withdraw
from headgate.store import request_log
from headgate.store.request_log import RequestLog
from tests.api.fake import FakeEngine, Killed
from tests.api.in_process import REGISTRY, InProcess
from tests.api.samples import document


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    return FakeEngine(tmp_path)


def sent(client: InProcess, request_id: str, *documents: dict[str, Any], **more: Any) -> Any:
    body = {"dataflows": list(documents), **more}
    return client("POST", "/dataflows", request_id, json=body)


def withdrawn(client: InProcess, request_id: str, name: str) -> Any:
    return client("DELETE", f"/dataflows/{name}", request_id)


def test_sent_again_it_gets_the_same_answer_also_after_a_restart(engine: FakeEngine) -> None:
    client = InProcess(engine)
    first, gone = sent(client, "1", document("a")), withdrawn(client, "2", "a")
    assert (first.status_code, gone.status_code, engine.snapshot) == (200, 200, 2)
    for again in (client, InProcess(engine), InProcess(engine)):
        assert sent(again, "1", document("a")).json() == first.json()
        assert withdrawn(again, "2", "a").json() == gone.json()
    assert (engine.snapshot, engine.dataflows) == (2, ()), "nothing was changed again"
    assert sent(client, "3", document("a")).json()["submitted"], "another id is another request"


def test_refusals_too_are_the_same(engine: FakeEngine) -> None:
    client = InProcess(engine)
    refused = withdrawn(client, "1", "a")
    assert refused.status_code == 404
    sent(client, "2", document("a"))
    again = withdrawn(InProcess(engine), "1", "a")
    assert (again.status_code, again.json(), again.headers["content-type"]) == (
        404,
        refused.json(),
        "application/problem+json",
    )


def test_an_id_that_was_used_for_another_request_is_refused(engine: FakeEngine) -> None:
    client = InProcess(engine)
    sent(client, "1", document("a"))
    for other in (sent(client, "1", document("b")), withdrawn(client, "1", "a")):
        assert (other.status_code, other.json()["condition"]) == (422, "REQUEST_ID_REUSED")
    assert [flow.name for flow in engine.dataflows] == ["a"]


def test_settings_have_ids_too(engine: FakeEngine) -> None:
    client = InProcess(engine)
    sent(client, "1", document("a"))
    for _ in range(3):
        assert client("POST", "/dataflows/a/pause", "2").status_code == 200
    assert engine.done == [("pause", "a")]
    for _ in range(2):
        client("POST", "/dataflows/a/resume")
    assert engine.done[1:] == [("resume", "a")] * 2, "without an id each request stands for itself"


def test_an_error_of_ours_is_not_kept(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    client = InProcess(engine)
    with monkeypatch.context() as broken:
        broken.setattr(engine, "submit", None)
        assert sent(client, "1", document("a")).status_code == 500
    assert sent(client, "1", document("a")).status_code == 200


def test_an_engine_that_is_stopping_asks_to_try_again(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopping(*_: object, **__: object) -> None:
        raise InputError("ENGINE_STOPPED", "the engine is being stopped")

    with monkeypatch.context() as stopped:
        stopped.setattr(engine, "submit", stopping)
        refused = sent(InProcess(engine), "1", document("a"))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert sent(InProcess(engine), "1", document("a")).status_code == 200


def test_a_change_that_cannot_be_made_after_it_was_announced(engine: FakeEngine) -> None:
    served = ServedEngine(engine, REGISTRY)

    def fails(announce: Callable[[dict[str, Any]], None]) -> tuple[int, dict[str, Any]]:
        announce({"snapshot": engine.snapshot + 1})
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        served.once("1", "f", fails)
    assert served.once("1", "f", lambda _: (200, {"made": True})) == (200, {"made": True})


Change = Callable[[ServedEngine, Callable[[Any], None] | None], Any]
CHANGES: dict[str, Change] = {
    "submit": lambda served, announce: submit(served.engine, [document("b")], REGISTRY, before=announce),
    "replace": lambda served, announce: submit(
        served.engine, [document("a", "value > 9")], REGISTRY, replace=True, before=announce
    ),
    "withdraw": lambda served, announce: withdraw(served.engine, ["a"], before=announce),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_while_the_change_becomes_durable(engine: FakeEngine, tmp_path: Path, moment: str, name: str) -> None:
    """What a process that was not killed would have answered is what the same id is answered after the restart."""
    unharmed = FakeEngine(tmp_path / "unharmed")
    unharmed.state.path.mkdir()
    for each in (engine, unharmed):
        sent(InProcess(each), "0", document("a"))

    def act(served: ServedEngine) -> Any:
        return served.once("1", "f", lambda announce: (200, CHANGES[name](served, announce)))

    _, expected = act(ServedEngine(unharmed, REGISTRY))
    engine.killed = moment
    with pytest.raises(Killed):
        act(ServedEngine(engine, REGISTRY))
    assert engine.snapshot == (1 if moment == "before" else 2)
    for _ in range(2):
        status, answer = act(ServedEngine(engine, REGISTRY))
        assert (status, {**answer, "state": ""}) == (200, {**expected, "state": ""})
    assert engine.snapshot == 2, "once"
    assert engine.dataflows == unharmed.dataflows


def test_the_same_id_from_two_clients_at_once(engine: FakeEngine) -> None:
    request = ("POST", "/dataflows", "1", {"json": {"dataflows": [document("a")]}})
    answers = [answer.json() for answer in InProcess(engine).together(request, request)]
    assert answers[0] == answers[1]
    assert engine.snapshot == 1


def test_the_log_survives_a_torn_line_and_forgets_what_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "requests.jsonl"
    log = RequestLog(file, 0)
    log.record("1", "f", 200, {"n": 1})
    with file.open("ab") as torn:
        torn.write(b'{"request": "2", "fing')
    log.record("3", "f", 200, {"n": 3})
    reread = RequestLog(file, 0)
    assert [reread.find(name) is not None for name in "123"] == [True, False, True]
    monkeypatch.setattr(request_log, "MOST", 2)
    for number in range(4, 10):
        reread.record(str(number), "f", 200, {})
    assert [name for name in "13456789" if RequestLog(file, 0).find(name)] == ["8", "9"]
    monkeypatch.setattr(request_log, "KEPT_S", -1.0)
    assert RequestLog(file, 0).find("9") is None
    assert file.stat().st_size == 0
