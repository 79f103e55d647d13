"""The route of events: one stream for a client, which goes on where it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, ServerSentEvent

from headgate.access.authority import Verb
from headgate.api.callers import Caller
from headgate.api.scopes import scope
from headgate.service.events import EventFeed, LiveEvent, event_id
from headgate.service.serve import ServedEngine

__all__ = ["EventTopic", "event_routes"]

RETRY_MS = 1_000
MOST_WAITING = 1_000
"""A client that is further behind is disconnected; it comes back and goes on where it was."""


class EventTopic(StrEnum):
    """What a client may follow."""

    PLAN = "plan"
    DECISION = "decision"
    RATES = "rates"
    HEALTH = "health"
    OPERATION = "operation"


Topics = Annotated[list[EventTopic] | None, Query(description="What to follow; everything if left out.")]
ID = r"^\d{1,18}\.\d{1,18}$"
After = Annotated[str | None, Query(pattern=ID, description="As Last-Event-ID, for who cannot send that header.")]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=ID,
        description="The last id that was seen: what came after it follows first.",
    ),
]


def event_routes(served: ServedEngine) -> APIRouter:
    """The route of events."""
    router = APIRouter(prefix="/v1")

    @router.get("/events", response_class=EventSourceResponse, openapi_extra=scope(Verb.READ))
    async def events(
        who: Caller, topics: Topics = None, after: After = None, last_event_id: LastEventId = None
    ) -> AsyncIterator[ServerSentEvent]:
        """Follow what happens: a new plan, new rates, states of dataflows. Ids are positions of the journal."""
        del who
        seen = last_event_id or after
        place = None if seen is None else event_id(seen)
        wanted = frozenset(map(str, topics or EventTopic))
        with _following(served.events) as queue:
            if place is None:
                first = await run_in_threadpool(served.events.now)
                place = first.at
                yield _sent(first)
            else:
                for missed in await run_in_threadpool(lambda at: list(served.events.since(at)), place):
                    place = missed.at
                    if missed.topic in wanted:
                        yield _sent(missed)
            for present in await run_in_threadpool(served.events.present):
                if present.topic in wanted:
                    yield _sent(present)
            while (event := await queue.get()) is not None:
                if event.topic in wanted and (event.at is None or place is None or event.at > place):
                    yield _sent(event)

    return router


@contextmanager
def _following(feed: EventFeed) -> Iterator[asyncio.Queue[LiveEvent | None]]:
    """A queue into which events come from other threads; it ends with ``None``."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[LiveEvent | None] = asyncio.Queue()

    def put(event: LiveEvent | None) -> None:
        if queue.qsize() < MOST_WAITING:
            queue.put_nowait(event)
        elif queue.qsize() == MOST_WAITING:
            queue.put_nowait(None)

    def take(event: LiveEvent | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(put, event)

    leave = feed.follow(take)
    try:
        yield queue
    finally:
        leave()


def _sent(event: LiveEvent) -> ServerSentEvent:
    data: Any = event.data
    return ServerSentEvent(data=data, event=event.topic, id=event.id, retry=RETRY_MS)
