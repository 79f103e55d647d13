"""A request id makes a change happen once, whatever is killed and however often it is sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.service.serve import Acknowledger, ServedEngine
from headgate.service.submit import submit, withdraw
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


Change = Callable[[FakeEngine, Acknowledger | None], Any]
CHANGES: dict[str, Change] = {
    "submit": lambda engine, acknowledge: submit(engine, [document("b")], REGISTRY, False, acknowledge),
    "replace": lambda engine, acknowledge: submit(engine, [document("a", "value > 9")], REGISTRY, True, acknowledge),
    "withdraw": lambda engine, acknowledge: withdraw(engine, ["a"], acknowledge),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_while_the_change_becomes_durable(engine: FakeEngine, tmp_path: Path, moment: str, name: str) -> None:
    """What a process that was not killed would have answered is what the same id is answered after the restart."""
    (tmp_path / "unharmed").mkdir()
    unharmed = FakeEngine(tmp_path / "unharmed")
    for each in (engine, unharmed):
        sent(InProcess(each), "0", document("a"))

    def act(engine: FakeEngine) -> Any:
        served = ServedEngine(engine, REGISTRY)
        return served.once("1", "f", lambda acknowledge: (200, CHANGES[name](engine, acknowledge)))

    _, expected = act(unharmed)
    engine.killed = moment
    with pytest.raises(Killed):
        act(engine)
    assert engine.snapshot == (1 if moment == "before" else 2)
    for _ in range(2):
        status, answer = act(engine)
        assert (status, {**answer, "state": ""}) == (200, {**expected, "state": ""})
    assert engine.snapshot == 2, "once"
    assert engine.dataflows == unharmed.dataflows


def test_the_same_id_from_two_clients_at_once(engine: FakeEngine) -> None:
    request = ("POST", "/dataflows", "1", {"json": {"dataflows": [document("a")]}})
    answers = [answer.json() for answer in InProcess(engine).together(request, request)]
    assert answers[0] == answers[1]
    assert engine.snapshot == 1


def test_a_setting_is_acknowledged_with_its_change(engine: FakeEngine) -> None:
    client = InProcess(engine)
    sent(client, "1", document("a"))
    engine.killed = "after"
    with pytest.raises(Killed):
        ServedEngine(engine, REGISTRY).once(
            "2",
            "f",
            lambda acknowledge: engine.pause(  # type: ignore[arg-type,return-value]
                "a", lambda applied: [acknowledge({"snapshot": applied.snapshot})]
            ),
        )
    again = ServedEngine(engine, REGISTRY).once("2", "f", lambda _: pytest.fail("made twice"))
    assert again == (200, {"snapshot": 2})


def test_answers_are_known_for_a_day(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    client = InProcess(engine)
    sent(client, "1", document("a"))
    start = time.time()
    monkeypatch.setattr("time.time", lambda: start + 23 * 3600)
    assert sent(client, "1", document("a")).json()["submitted"]
    monkeypatch.setattr("time.time", lambda: start + 25 * 3600)
    assert sent(client, "1", document("a")).json()["continued"] == ["a"], "the id is free again"
