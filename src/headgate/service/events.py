"""What happens in an engine, as events that may be followed and resumed.

Events that come from the journal have its position as their id, and are told when they are durable: a follower that
comes back with the last id that it saw misses none. Rates and states are told as they are, and need no history.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.service.engine import JournaledEngine
from headgate.service.observations import interval_facts
from headgate.store.decision_entries import DecisionEnded, DecisionMade, DecisionVerified, PolicyChosen
from headgate.store.entries import Entry, SnapshotPublished
from headgate.store.observations import ObservationHistory

__all__ = ["EventFeed", "LiveEvent", "event_id"]

LOOK_EVERY_S = 1.0
LAST = 1_000_000
"""Stands for all events of a position."""

KINDS = (SnapshotPublished, DecisionMade, DecisionEnded, DecisionVerified, PolicyChosen)
"""The kinds of entries that are events."""

Follower = Callable[["LiveEvent | None"], None]
"""Takes each event as it happens, and ``None`` when the engine stops. It must return at once."""


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """Something that has happened."""

    topic: str
    """plan, decision, rates, health or operation."""

    data: Any
    at: tuple[int, int] | None = None
    """The position in the journal, and the number within it; none for what has no history."""

    @property
    def id(self) -> str | None:
        """What a follower comes back with."""
        return None if self.at is None else f"{self.at[0]}.{self.at[1]}"


def event_id(text: str) -> tuple[int, int] | None:
    """The place that an id names; none if it is no id.

    >>> event_id("17.2"), event_id("x"), event_id("1.2.3")
    ((17, 2), None, None)
    """
    parts = text.split(".")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        return None
    return int(parts[0]), int(parts[1])


class EventFeed:
    """Tells followers what happens. Any thread may follow; looking costs nothing while nobody does."""

    def __init__(self, engine: JournaledEngine, state: Path) -> None:
        self._engine, self._history = engine, ObservationHistory(state / "observations")
        self._lock = threading.Lock()
        self._followers: list[Follower] = []
        self._ended = threading.Event()
        self._looking: threading.Thread | None = None
        self._seen: dict[str, Any] = {}
        engine.journal.watch(self._appended)

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Tell somebody from now on; returns what ends that."""
        with self._lock:
            self._followers.append(follower)
            if self._looking is None and not self._ended.is_set():
                self._looking = threading.Thread(target=self._look, name="events", daemon=True)
                self._looking.start()

        def leave() -> None:
            with self._lock:
                self._followers.remove(follower)

        if self._ended.is_set():
            follower(None)
        return leave

    def now(self) -> LiveEvent:
        """The plan that runs, with the id from which to go on."""
        position = self._engine.journal.position
        return LiveEvent("plan", {"snapshot": self._engine.about()["snapshot"]}, (position, LAST))

    def present(self) -> list[LiveEvent]:
        """Rates and states as they are."""
        rates, health = self._rates(), self._health()
        return [*([] if rates is None else [LiveEvent("rates", rates)]), LiveEvent("health", health)]

    def since(self, place: tuple[int, int]) -> Iterator[LiveEvent]:
        """What is in the journal after an event, oldest first; what is appended meanwhile is not part of it."""
        journal = self._engine.journal
        end = journal.position  # kinds are read one after the other: one must not be read further than another
        read = ((position, entry) for kind in KINDS for position, entry in journal.read(kind, place[0] - 1))
        entries = [(position, entry) for position, entry in read if position <= end]
        by_position: dict[int, list[Entry]] = {}
        for position, entry in sorted(entries, key=lambda one: one[0]):
            by_position.setdefault(position, []).append(entry)
        events = (event for position, group in by_position.items() for event in _events_of(position, group))
        return (event for event in events if event.at is not None and event.at > place)

    def close(self) -> None:
        """The engine stops: all followers are told, and leave."""
        self._ended.set()
        self.tell(None)

    def _appended(self, position: int, entries: Sequence[Entry]) -> None:
        if self._followers:
            for event in _events_of(position, entries):
                self.tell(event)

    def tell(self, event: LiveEvent | None) -> None:
        """Tell all followers."""
        with self._lock:
            followers = list(self._followers)
        for follower in followers:
            follower(event)

    def _look(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            with self._lock:
                if not self._followers:
                    self._looking = None
                    return
            for event in self.present():
                if event.data != self._seen.get(event.topic):
                    self._seen[event.topic] = event.data
                    self.tell(event)

    def _rates(self) -> dict[str, Any] | None:
        newest = self._history.last()
        if newest is None:
            return None
        return {"snapshot": self._engine.about()["snapshot"], "ended": newest.ended, **interval_facts(newest)}

    def _health(self) -> dict[str, Any]:
        flows, fragments = self._engine.status()
        states = {flow.name: str(flow.state) for flow in flows}
        return {"dataflows": states, "failed_fragments": sum(one.failure is not None for one in fragments)}


def _events_of(position: int, entries: Sequence[Entry]) -> Iterator[LiveEvent]:
    events = [entry for entry in entries if isinstance(entry, KINDS)]
    for number, entry in enumerate(events):
        topic, data = _facts(entry)
        yield LiveEvent(topic, data, (position, number))


def _facts(entry: Entry) -> tuple[str, dict[str, Any]]:
    """Enough to know what to ask for."""
    match entry:
        case DecisionMade():
            return "decision", {"what": "made", "number": entry.number, "policy": entry.policy}
        case DecisionEnded():
            return "decision", {"what": "ended", "number": entry.number, "outcome": entry.outcome.value}
        case DecisionVerified():
            return "decision", {"what": "verified", "number": entry.number, "error": entry.error}
        case PolicyChosen():
            return "decision", {"what": "policy", "policy": entry.policy, "mode": entry.mode}
        case SnapshotPublished():
            return "plan", {"snapshot": entry.number}
    raise AssertionError(entry)
