"""The control socket: one engine, many clients, none of whom can hurt another."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headgate.control import server as server_module
from headgate.control.client import ask
from headgate.control.place import LONGEST, socket_place
from headgate.control.requests import answerer
from headgate.control.server import listening
from headgate.errors import InputError, InvalidDataflow
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine


def document(name: str, where: str = "value > 1", **more: Any) -> dict[str, Any]:
    tasks = [
        {"id": "r", "type": "rate"},
        {"id": "f", "type": "filter", "config": {"where": where}, "inputs": ["r"]},
        {"id": "w", "type": "write_memory", "config": {"name": name}, "inputs": ["f"]},
    ]
    return {"name": name, "tasks": tasks, **more}


def submitting(*documents: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"do": "submit", "dataflows": list(documents), **more}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir()
    return made


@pytest.fixture
def engine(state: Path) -> Iterator[FakeEngine]:
    made = FakeEngine()
    with listening(state, answerer(made, default_registry())):
        yield made


def refused(state: Path, request: dict[str, Any]) -> InputError:
    with pytest.raises(InputError) as caught:
        ask(state, request)
    return caught.value


def test_submit_list_status_withdraw(engine: FakeEngine, state: Path) -> None:
    told = ask(state, submitting(document("wide"), document("narrow", "value > 5", owner="ben")))
    first, second = told["submitted"]
    assert first["added"] == ["r", "f", "w"]
    assert [(one["task"], one["for"]) for one in second["reused"]] == [("r", "wide")]
    assert [one["task"] for one in second["wider"]] == ["f"]
    assert second["taps"] == [{"from": "wide.f", "to": "f"}]
    assert told["fragments"]["touched"] == ["source-1"]
    assert ask(state, submitting(document("wide")))["continued"] == ["wide"], "it runs just as it is given"

    assert [flow["name"] for flow in ask(state, {"do": "list"})["dataflows"]] == ["wide", "narrow"]
    tasks = ask(state, {"do": "status", "name": "narrow"})["tasks"]
    assert (tasks[0]["task"], tasks[0]["shared_with"]) == ("r", ["wide"])

    gone = ask(state, {"do": "withdraw", "names": ["wide"]})["withdrawn"][0]
    assert gone["removed"] == ["w"]
    assert {one["task"] for one in gone["left"]} == {"r", "f"}
    assert [flow["name"] for flow in ask(state, {"do": "list"})["dataflows"]] == ["narrow"]


def test_what_cannot_be_done_is_told_and_changes_nothing(engine: FakeEngine, state: Path) -> None:
    ask(state, submitting(document("warm")))
    before = engine.shared
    assert "did you mean 'warm'?" in refused(state, {"do": "withdraw", "names": ["wram"]}).message
    assert refused(state, {"do": "withdraw", "names": ["warm", "none"]}).condition == "UNKNOWN_DATAFLOW"
    assert refused(state, submitting(document("warm", "value > 2"))).condition == "DATAFLOW_CHANGED"
    assert refused(state, submitting(document("a"), document("a", "value > 2"))).condition == "NAME_TAKEN"
    invalid = refused(state, submitting(document("b"), document("c", "valve > 2")))
    assert isinstance(invalid, InvalidDataflow)
    assert "did you mean 'value'?" in str(invalid.faults[0])
    assert refused(state, {"do": "status", "name": "none"}).condition == "UNKNOWN_DATAFLOW"
    assert engine.shared is before


@pytest.mark.parametrize(
    "garbage",
    [
        b"\n",
        b"hello\n",
        b"[1, 2]\n",
        b'{"do": "explode"}\n',
        b'{"do": "submit"}\n',
        b'{"do": "submit", "dataflows": [1]}\n',
        b'{"do": "submit", "dataflows": []}\n',
        b'{"do": "withdraw", "names": "warm"}\n',
        b'{"do": "list", "more": 1}\n',
        b"\xff\xfe\x00\n",
        b"[" * 100_000 + b"\n",
        b'{"do": "submit", "dataflows": [{"name": 5, "tasks": {"a": []}}]}\n',
    ],
)
def test_garbage_is_refused_and_the_next_request_answered(engine: FakeEngine, state: Path, garbage: bytes) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(socket_place(state)))
        stream = client.makefile("rwb")
        stream.write(garbage + b'{"do": "list"}\n')
        stream.flush()
        assert json.loads(stream.readline())["error"]["condition"] in ("BAD_REQUEST", "INVALID_DATAFLOW")
        assert json.loads(stream.readline())["answer"]["dataflows"] == []


def test_a_request_without_end_is_cut_off(engine: FakeEngine, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "LONGEST_LINE", 1_000)
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(socket_place(state)))
        client.sendall(b'"' + b"x" * 2_000)
        stream = client.makefile("rb")
        assert json.loads(stream.readline())["error"]["condition"] == "BAD_REQUEST"
    assert ask(state, {"do": "list"})["dataflows"] == []


def test_clients_that_hang_keep_nobody_waiting(engine: FakeEngine, state: Path) -> None:
    hanging = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    try:
        for client in hanging:
            client.connect(str(socket_place(state)))
            client.sendall(b'{"do": ')
        engine.may_go_on.clear()
        busy = threading.Thread(target=ask, args=(state, submitting(document("slow"))))
        busy.start()
        assert ask(state, {"do": "list"})["dataflows"] == [], "not even while a submission is under way"
        engine.may_go_on.set()
        busy.join(10)
        assert not busy.is_alive()
    finally:
        for client in hanging:
            client.close()


def test_one_that_is_let_go_after_a_while(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module._Handler, "timeout", 0.1)
    with listening(state, lambda _: {}) as place, closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(place))
        client.settimeout(10)
        assert client.recv(1) == b"", "the engine has closed it"


def test_many_clients_at_once(engine: FakeEngine, state: Path) -> None:
    failed: list[BaseException] = []

    def submit_and_withdraw(number: int) -> None:
        try:
            for turn in range(3):
                ask(state, submitting(document(f"f{number}", f"value > {turn}")))
                ask(state, {"do": "withdraw", "names": [f"f{number}"]})
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=submit_and_withdraw, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failed
    assert len(engine.shared.running.tasks) == 0


def test_an_error_of_ours_is_told_and_ends_nothing(state: Path) -> None:
    def broken(request: Any) -> dict[str, Any]:
        raise KeyError(request["do"])

    with listening(state, broken):
        assert "internal error: KeyError" in refused(state, {"do": "list"}).message
        assert "internal error: KeyError" in refused(state, {"do": "list"}).message


def test_only_the_user_may_connect_and_nothing_is_left(state: Path) -> None:
    with listening(state, lambda _: {}) as place:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert not place.exists()


def test_no_engine_a_dead_one_and_one_that_dies_while_it_works(state: Path, tmp_path: Path) -> None:
    assert refused(tmp_path / "none", {"do": "list"}).condition == "NO_ENGINE"
    assert refused(state, {"do": "list"}).condition == "NO_ENGINE"
    with closing(socket.socket(socket.AF_UNIX)) as dead:
        dead.bind(str(socket_place(state)))
    assert refused(state, {"do": "list"}).condition == "ENGINE_DEAD"
    with listening(state, lambda _: {"replaced": True}):
        assert ask(state, {"do": "list"}) == {"replaced": True}, "an old socket is replaced"

    with closing(socket.socket(socket.AF_UNIX)) as dying:
        dying.bind(str(socket_place(state)))
        dying.listen()

        def die() -> None:
            connection, _ = dying.accept()
            connection.recv(100)
            connection.close()

        threading.Thread(target=die, daemon=True).start()
        told = refused(state, {"do": "list"})
    assert told.condition == "ENGINE_GONE"
    assert "headgate list" in told.message


def test_a_path_that_is_too_long_for_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    short = tempfile.mkdtemp(prefix="hg")
    request.addfinalizer(lambda: shutil.rmtree(short))
    monkeypatch.setattr("tempfile.gettempdir", lambda: short)
    deep = tmp_path / ("deep" * 40)
    deep.mkdir()
    other = tmp_path / ("deep" * 41)
    other.mkdir()
    with listening(deep, lambda _: {"deep": True}) as place:
        assert len(os.fsencode(place)) <= LONGEST
        assert ask(deep, {"do": "list"}) == {"deep": True}
        link = tmp_path / "link"
        link.symlink_to(deep)
        assert ask(link, {"do": "list"}) == {"deep": True}, "whatever way leads there"
        assert refused(other, {"do": "list"}).condition == "NO_ENGINE"
    place.parent.chmod(0o755)
    with pytest.raises(InputError, match="not only yours"):
        socket_place(deep)
