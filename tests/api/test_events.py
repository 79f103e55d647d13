"""Events: a client that is killed and comes back misses none, sees none twice, and keeps nobody waiting."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from headgate.api.application import application
from headgate.api.client import AsyncEngineClient, EngineClient
from headgate.api.event_routes import MOST_WAITING
from headgate.api.place import socket_place
from headgate.api.server import serving
from headgate.service.serve import ServedEngine
from headgate.store.decision_entries import DecisionEnded, DecisionMade, DecisionOutcome
from headgate.store.entries import Delivered, SnapshotPublished
from headgate.store.observations import ObservationHistory
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.api.samples import document
from tests.runtime.small import wait_for
from tests.store.test_observations import observation


class Service:
    def __init__(self, state: Path) -> None:
        self.state, self.engine = state, FakeEngine(state)
        self.served = ServedEngine(self.engine, default_registry())

    @contextmanager
    def running(self) -> Iterator[None]:
        with serving(self.state, application(self.served)), closing(self.served.events):
            yield


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    with made.running():
        yield made


def test_what_happens_is_told(service: Service) -> None:
    with EngineClient(service.state) as client:
        events = client.events("plan", "rates")
        first = next(events)
        assert (first.topic, first.data) == ("plan", {"snapshot": 0})
        client.submit([document("wide")])
        assert next(events).data == {"snapshot": 1}
        client.pause("wide")
        assert next(events).data == {"snapshot": 2}
        ObservationHistory(service.state / "observations").append(observation(time.time()))
        rates = next(events)
        assert (rates.topic, rates.id, rates.data["snapshot"]) == ("rates", None, 2)
        assert rates.data["rows_in_per_s"] > 0
        health = next(client.events("health", after=first.id))
        assert health.data["dataflows"] == {"wide": "running"}


def test_a_client_that_is_killed_and_comes_back_misses_nothing(tmp_path: Path) -> None:
    """Its connection is cut at random, also while many changes and decisions come, and the engine is started anew.

    What it saw is exactly what was published: plans, decisions, and what came of them.
    """
    draw, changes = random.Random(7), 60
    seen: list[tuple[str, int]] = []
    cuts, last = 0, None
    for engine in (1, 2):
        service = Service(tmp_path)
        numbers = range((engine - 1) * changes + 1, engine * changes + 1)
        with service.running():
            if last is None:
                with EngineClient(service.state) as client:
                    last = next(client.events("plan")).id
            work = threading.Thread(target=_publish, args=(service, numbers))
            work.start()
            # Of the first engine not all is seen: the rest comes from the second one.
            wanted = engine * 3 * changes - (40 if engine == 1 else 0)
            while len(seen) < wanted:
                with EngineClient(service.state) as client:
                    for event in client.events("plan", "decision", after=last):
                        seen.append(
                            (event.data.get("what", "plan"), event.data.get("snapshot") or event.data["number"])
                        )
                        last = event.id
                        if draw.random() < 0.05 or len(seen) == wanted:
                            break
                cuts += 1
            work.join()
        service.engine.journal.close()
    assert seen == [(what, number) for number in range(1, 2 * changes + 1) for what in ("made", "plan", "ended")]
    assert cuts > 8


def test_what_is_appended_while_the_past_is_read_comes_whole_and_later(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kinds are read one after the other: if one were read further, what the others lack would never be told."""
    journal, read = service.engine.journal, service.engine.journal.read
    journal.append(SnapshotPublished(1, {}))

    def slow(kind: type[Any], since: int = 0) -> Any:
        found = list(read(kind, since))
        journal.append(SnapshotPublished(2, {}), DecisionEnded(2, 1.0, DecisionOutcome.DONE))
        return found

    monkeypatch.setattr(journal, "read", slow)
    assert [(event.topic, event.data) for event in service.served.events.since((0, 0))] == [("plan", {"snapshot": 1})]


def _publish(service: Service, numbers: range) -> None:
    journal = service.engine.journal
    for number in numbers:
        journal.append(DecisionMade(number, 1.0, "ce", 1, "auto", "t", {}, {}, {}, {}, ()))
        journal.append(SnapshotPublished(number, {}), DecisionEnded(number, 1.0, DecisionOutcome.DONE))
        journal.append(Delivered("a-1", number))
        if number % 10 == 0:
            time.sleep(0.01)  # so that cuts fall between changes too


def test_decisions_are_told_with_the_change_that_they_made(service: Service) -> None:
    """Two events of one append have ids of their own: who comes back between them gets the second."""
    with EngineClient(service.state) as client:
        begun = next(client.events())
        ended = DecisionEnded(7, 1.0, DecisionOutcome.DONE)
        service.engine.journal.append(SnapshotPublished(3, {}), ended)
        both = list(islice(client.events("plan", "decision", after=begun.id), 2))
        assert [event.topic for event in both] == ["plan", "decision"]
        assert both[1].data == {"what": "ended", "number": 7, "outcome": "done"}
        again = next(client.events("plan", "decision", after=both[0].id))
    assert again == both[1]


def test_a_client_goes_on_with_the_next_engine(tmp_path: Path) -> None:
    first = Service(tmp_path)
    with first.running(), EngineClient(tmp_path) as client:
        begun = next(client.events("plan"))
        client.submit([document("wide")])
    first.engine.journal.close()
    second = Service(tmp_path)
    with second.running(), EngineClient(tmp_path) as client:
        assert next(client.events("plan", after=begun.id)).data == {"snapshot": 1}


def test_the_same_with_await(service: Service) -> None:
    async def use() -> list[int]:
        async with AsyncEngineClient(service.state) as client:
            seen = []
            async for event in client.events("plan"):
                seen.append(event.data["snapshot"])
                if len(seen) == 3:
                    return seen
                await client.submit([document(f"f{len(seen)}", f"value > {len(seen)}")])
        return []

    assert asyncio.run(use()) == [0, 1, 2]


def test_an_end_of_the_service_ends_the_streams_at_once(tmp_path: Path) -> None:
    service, ended = Service(tmp_path), threading.Event()
    transport = httpx.HTTPTransport(uds=str(socket_place(tmp_path)))
    started = threading.Event()

    def follow() -> None:
        with (
            httpx.Client(transport=transport, timeout=None) as http,
            http.stream("GET", "http://e/v1/events") as stream,
        ):
            for _ in stream.iter_lines():
                started.set()
        ended.set()

    thread = threading.Thread(target=follow)
    with serving(tmp_path, application(service.served)):
        thread.start()
        assert started.wait(30)
        began = time.monotonic()
        service.served.events.close()
        assert ended.wait(30)
    assert time.monotonic() - began < 4.0, "nobody waits for the patience of the server"
    thread.join()


def test_who_is_far_behind_is_left_and_others_are_not_held_up(service: Service) -> None:
    transport = httpx.HTTPTransport(uds=str(socket_place(service.state)))
    asked: dict[str, Any] = {"method": "GET", "url": "http://e/v1/events", "params": {"topics": "plan"}}
    with httpx.Client(transport=transport, timeout=None) as http, http.stream(**asked) as slow:
        lines = slow.iter_lines()
        next(lines)  # it reads no more for now
        for number in range(1, 40 * MOST_WAITING):
            service.engine.journal.append(SnapshotPublished(number, {}), durable=False)
        with EngineClient(service.state) as client:
            assert client.status()["snapshot"] == 0, "others are answered"
        left = sum(line.startswith("data:") for line in lines)
    assert left < 40 * MOST_WAITING - 1, "the stream has been ended"
    wait_for(lambda: not service.served.events._followers, "the end of the follower")


def test_nobody_looks_while_nobody_follows(service: Service) -> None:
    with EngineClient(service.state) as client:
        next(client.events("plan"))
    wait_for(lambda: service.served.events._looking is None, "the end of the thread")


@pytest.mark.parametrize("wrong", ["x", "1", "1.2.3", "-1.0", "9" * 40 + ".0"])
def test_ids_that_are_none_of_ours_are_refused(service: Service, wrong: str) -> None:
    transport = httpx.HTTPTransport(uds=str(socket_place(service.state)))
    with httpx.Client(transport=transport) as http:
        answer = http.get("http://e/v1/events", headers={"Last-Event-ID": wrong})
        assert (answer.status_code, answer.json()["condition"]) == (400, "BAD_REQUEST")
        assert http.get("http://e/v1/events", params={"topics": "gossip"}).status_code == 400
