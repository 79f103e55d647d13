"""The API on a real socket: one engine, many clients, none of whom can hurt another."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.api import limits
from headgate.api.application import application
from headgate.api.client import EngineClient
from headgate.api.place import LONGEST, socket_place
from headgate.api.server import serving
from headgate.errors import HeadgateError, InputError, InvalidDataflow
from headgate.model.service_level import ServiceLevel
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.api.samples import document


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir()
    return made


@pytest.fixture
def engine(state: Path) -> Iterator[FakeEngine]:
    made = FakeEngine(state)
    with serving(state, application(ServedEngine(made, default_registry()))):
        yield made


@pytest.fixture
def client(engine: FakeEngine, state: Path) -> Iterator[EngineClient]:
    with EngineClient(state) as made:
        yield made


def refused(request: Callable[[], Any]) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        request()
    return caught.value


def listed(state: Path) -> dict[str, Any]:
    with EngineClient(state) as client:
        return client.dataflows()


def names(client: EngineClient) -> list[str]:
    return [flow["name"] for flow in client.dataflows()["dataflows"]]


async def empty_app(scope: Any, receive: Any, send: Any) -> None:
    head = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b'{"replaced": true}'})


def test_submit_list_status_withdraw(client: EngineClient) -> None:
    answer = client.submit([document("wide"), document("narrow", "value > 5", owner="ben")])
    first, second = answer["submitted"]
    assert first["added"] == ["r", "f", "w"]
    assert [(one["task"], one["for"]) for one in second["reused"]] == [("r", "wide")]
    assert [one["task"] for one in second["wider"]] == ["f"]
    assert second["taps"] == [{"from": "wide.f", "to": "f"}]
    assert answer["fragments"]["touched"] == ["source-1"]
    assert client.submit([document("wide")])["continued"] == ["wide"], "it runs just as it is given"

    assert names(client) == ["wide", "narrow"]
    tasks = client.status("narrow")["tasks"]
    assert (tasks[0]["task"], tasks[0]["shared_with"]) == ("r", ["wide"])
    assert client.status()["fragments"][0]["name"] == "wide.r"

    gone = client.withdraw(["wide"])["withdrawn"][0]
    assert gone["removed"] == ["w"]
    assert {one["task"] for one in gone["left"]} == {"r", "f"}
    assert names(client) == ["narrow"]


def test_settings_of_dataflows_and_tasks_reach_the_engine(client: EngineClient, engine: FakeEngine) -> None:
    client.submit([document("warm")])
    client.pause("warm")
    client.resume("warm")
    client.limit("warm", "r", 100)
    client.limit("warm", "r", None)
    client.switch("warm", "f", "cheap")
    client.repartition("warm", "f", 4)
    assert engine.done == [
        ("pause", "warm"),
        ("resume", "warm"),
        ("limit", "warm", "r", 100),
        ("limit", "warm", "r", None),
        ("switch", "warm", "f", "cheap"),
        ("repartition", "warm", "f", 4),
    ]
    assert engine.switched_by == client.me()["name"]
    assert refused(lambda: client.pause("wram")).condition == "UNKNOWN_DATAFLOW"
    assert refused(lambda: client.limit("warm", "r", 0)).condition == "BAD_LIMIT"


def test_a_service_level_is_changed_as_a_whole_or_not(client: EngineClient, engine: FakeEngine) -> None:
    client.submit([document("warm")])
    client.set_level("warm", {"latency_max_s": 2.0, "budget_per_h": "0.50"})
    client.set_level("warm", None)
    changed = ServiceLevel(latency_max_s=2.0, budget_per_h=Decimal("0.50"))
    assert engine.done == [("level", "warm", changed), ("level", "warm", None)]
    for changes, reason in (
        ({"throughput_min": 1.5}, "throughput_min: input should be less than or equal to 1"),
        ({"latency_min_s": 2.0}, "latency_min_s needs latency_max_s"),
        ({}, "no limit is given"),
    ):
        assert reason in refused(lambda changes=changes: client.set_level("warm", changes)).message  # type: ignore[misc]
    assert refused(lambda: client.set_level("wram", {"latency_max_s": 2.0})).condition == "UNKNOWN_DATAFLOW"
    assert len(engine.done) == 2


def test_what_is_refused_changes_nothing_and_is_the_same_error(client: EngineClient, engine: FakeEngine) -> None:
    client.submit([document("warm")])
    before = engine.shared
    unknown = refused(lambda: client.withdraw(["wram"]))
    assert (unknown.condition, unknown.parameters) == ("UNKNOWN_DATAFLOW", {"name": "wram", "nearest": "warm"})
    assert refused(lambda: client.withdraw(["warm", "none"])).condition == "UNKNOWN_DATAFLOW"
    assert refused(lambda: client.submit([document("warm", "value > 2")])).condition == "DATAFLOW_CHANGED"
    taken = refused(lambda: client.submit([document("a"), document("a", "value > 2")]))
    assert taken.condition == "NAME_TAKEN"
    invalid = refused(lambda: client.submit([document("b", "valve > 1"), document("c", "valve > 2")]))
    assert isinstance(invalid, InvalidDataflow)
    assert [(fault.condition, fault.task, fault.nearest) for fault in invalid.faults] == [
        ("COLUMNS_DO_NOT_FIT", "f", "value"),
        ("COLUMNS_DO_NOT_FIT", "f", "value"),
    ], "the faults of all of them"
    assert refused(lambda: client.status("none")).condition == "UNKNOWN_DATAFLOW"
    assert engine.shared is before


def post(body: bytes) -> bytes:
    head = f"POST /v1/dataflows HTTP/1.1\r\nHost: e\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\nConnection: close\r\n\r\n" + body


def answer_to(state: Path, sent: bytes) -> bytes:
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(20)
        client.connect(str(socket_place(state)))
        client.sendall(sent)
        return b"".join(iter(lambda: client.recv(65536), b""))


GARBAGE = [
    b"",
    b"hello",
    b"[1, 2]",
    b"{}",
    b'{"dataflows": [1]}',
    b'{"dataflows": []}',
    b'{"dataflows": [{}], "more": 1}',
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"dataflows": [{"name": 5, "tasks": {"a": []}}]}',
    b'{"dataflows": [' + b"[" * 5_000 + b"]" * 5_000 + b"]}",
]


def test_bodies_that_are_garbage_are_refused_with_a_problem(client: EngineClient, state: Path) -> None:
    for body in GARBAGE:
        head, _, answer = answer_to(state, post(body)).partition(b"\r\n\r\n")
        assert b"application/problem+json" in head, body[:100]
        assert json.loads(answer)["condition"] in ("BAD_REQUEST", "INVALID_DATAFLOW"), body[:100]
        assert names(client) == []


NOT_HTTP = [b"\n\n\n\n", b"hello\r\n\r\n", b"\x00" * 1_000, b"GET / HTTP/9.9\r\n\r\n", b"x" * 100_000]


def test_what_is_not_http_is_refused(client: EngineClient, state: Path) -> None:
    for sent in NOT_HTTP:
        with closing(socket.socket(socket.AF_UNIX)) as stranger:
            stranger.connect(str(socket_place(state)))
            stranger.sendall(sent)
            stranger.shutdown(socket.SHUT_WR)
            stranger.settimeout(10)
            assert stranger.recv(65536)[:12] in (b"HTTP/1.1 400", b""), sent[:100]
        assert names(client) == []


def test_a_body_that_is_too_large_is_cut_off(
    client: EngineClient, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_BYTES", 1_000)
    assert b"HTTP/1.1 413" in answer_to(state, post(b'"' + b"x" * 2_000 + b'"'))
    endless = (
        post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + b"800\r\n" + b"x" * 0x800 + b"\r\n"
    )
    assert b'"condition":"REQUEST_TOO_LARGE"' in answer_to(state, endless), "though more may follow"
    assert refused(lambda: client.submit([document("a" * 2_000)])).condition == "REQUEST_TOO_LARGE"
    assert names(client) == []


def submit_one(state: Path, name: str) -> None:
    with EngineClient(state) as client:
        client.submit([document(name)])


def test_names_by_the_thousand_and_a_name_that_is_too_long(client: EngineClient) -> None:
    many = [f"dataflow_number_{number}" for number in range(10_000)]
    assert refused(lambda: client.withdraw(many)).condition == "UNKNOWN_DATAFLOW"
    assert refused(lambda: client.status("x" * 60_000)).condition in ("UNKNOWN_DATAFLOW", "BAD_REQUEST")
    assert names(client) == []


def test_clients_that_hang_keep_nobody_waiting(engine: FakeEngine, state: Path, client: EngineClient) -> None:
    hanging = [socket.socket(socket.AF_UNIX) for _ in range(100)]
    try:
        for number, each in enumerate(hanging):
            each.connect(str(socket_place(state)))
            each.sendall((post(b"x" * 100)[:-50], b"GET /v1/dataflows HT", b"")[number % 3])
        engine.may_go_on.clear()
        busy = [threading.Thread(target=submit_one, args=(state, f"slow{number}")) for number in range(60)]
        for thread in busy:
            thread.start()
        time.sleep(0.2)
        assert names(client) == [], "not even while one submission is under way and others wait for it"
        engine.may_go_on.set()
        for thread in busy:
            thread.join(20)
            assert not thread.is_alive()
        assert len(names(client)) == 60
    finally:
        for each in hanging:
            each.close()


def test_clients_that_send_nothing_are_given_up(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATIENCE_S", 0.2)
    app = application(ServedEngine(FakeEngine(state), default_registry()))
    with serving(state, app):
        assert answer_to(state, b"") == b"", "the engine has closed it"
        assert answer_to(state, b"GET /v1/dataflows HT") == b""
        slow_body = answer_to(state, post(b"x" * 100)[:-50])
        assert b"HTTP/1.1 408" in slow_body
        assert b'"condition":"REQUEST_TOO_SLOW"' in slow_body
        one = b"GET /v1/engine HTTP/1.1\r\nHost: e\r\n\r\n"
        assert answer_to(state, one + b"GET /v1/dataflows HT").count(b"HTTP/1.1 200") == 1, "nor for the second request"


def test_a_client_that_leaves_has_its_request_carried_out(
    client: EngineClient, engine: FakeEngine, state: Path
) -> None:
    engine.may_go_on.clear()
    with closing(socket.socket(socket.AF_UNIX)) as leaving:
        leaving.connect(str(socket_place(state)))
        leaving.sendall(post(json.dumps({"dataflows": [document("left")]}).encode()))
        time.sleep(0.2)
    engine.may_go_on.set()
    deadline = time.monotonic() + 10
    while not names(client):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_many_clients_at_once(engine: FakeEngine, state: Path) -> None:
    failed: list[BaseException] = []

    def submit_and_withdraw(number: int) -> None:
        try:
            with EngineClient(state) as client:
                for turn in range(3):
                    client.submit([document(f"f{number}", f"value > {turn}")])
                    client.withdraw([f"f{number}"])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=submit_and_withdraw, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failed
    assert len(engine.shared.running.tasks) == 0
    assert engine.snapshot == 48


def test_an_error_of_ours_is_answered_and_ends_nothing(
    client: EngineClient, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine, "status", None)
    for _ in range(2):
        error = refused(client.dataflows)
        assert (error.condition, error.message) == (
            "INTERNAL",
            "internal error: TypeError: 'NoneType' object is not callable",
        )
    time.sleep(0.2)
    assert capfd.readouterr() == ("", ""), "nothing on the engine's terminal"


def test_a_change_that_cannot_be_written_is_refused_with_a_sentence(
    client: EngineClient, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "state/journal")

    with monkeypatch.context() as patched:
        patched.setattr(engine, "_publish", full)
        error = refused(lambda: client.submit([document("wide")], request_id="one"))
    assert (error.condition, error.message) == (
        "NO_ROOM",
        "cannot write state/journal: no space left on device; free some room, or mend the file system",
    )
    assert names(client) == []
    assert client.submit([document("wide")], request_id="one")["submitted"], "the same request, when there is room"


def test_only_the_user_may_connect_and_nothing_is_left(state: Path) -> None:
    with serving(state, empty_app) as place:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert not place.exists()


def test_no_engine_a_dead_one_and_one_that_dies_while_it_works(state: Path, tmp_path: Path) -> None:
    assert refused(lambda: listed(tmp_path / "none")).condition == "NO_ENGINE"
    assert refused(lambda: listed(state)).condition == "NO_ENGINE"
    with closing(socket.socket(socket.AF_UNIX)) as dead:
        dead.bind(str(socket_place(state)))
    assert refused(lambda: listed(state)).condition == "ENGINE_DEAD"
    with serving(state, empty_app):
        assert listed(state) == {"replaced": True}, "an old socket is replaced"

    with closing(socket.socket(socket.AF_UNIX)) as dying:
        dying.bind(str(socket_place(state)))
        dying.listen()

        def die() -> None:
            for _ in range(2):  # the client first looks whether somebody listens
                connection, _ = dying.accept()
                connection.recv(100)
                connection.close()

        threading.Thread(target=die, daemon=True).start()
        gone = refused(lambda: listed(state))
    assert gone.condition == "ENGINE_GONE"
    assert "headgate list" in gone.message


def test_a_place_where_nothing_can_listen(state: Path) -> None:
    (state / "control.sock").mkdir()
    with pytest.raises(InputError) as caught, serving(state, empty_app):
        pass
    assert caught.value.condition == "CANNOT_LISTEN"


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
    with serving(deep, empty_app) as place:
        assert len(os.fsencode(place)) <= LONGEST
        assert listed(deep) == {"replaced": True}
        link = tmp_path / "link"
        link.symlink_to(deep)
        assert listed(link) == {"replaced": True}, "whatever way leads there"
        assert refused(lambda: listed(other)).condition == "NO_ENGINE"
    place.parent.chmod(0o755)
    with pytest.raises(InputError) as caught:
        socket_place(deep)
    assert caught.value.condition == "CONTROL_UNSAFE"
