"""The route of events: one stream for a client, which goes on where it was."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, ServerSentEvent

from headgate.access.authority import Verb
from headgate.api.callers import Caller
from headgate.api.scopes import scope
from headgate.service.events import EventFeed, LiveEvent, event_id
from headgate.service.serve import ServedEngine

__all__ = ["EventTopic", "event_routes"]

RETRY_MS = 1_000
MOST_WAITING, MOST_SHOWN = 1_000, 3
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
MostSamples = Annotated[int | None, Query(ge=1, le=1_000_000, description="End after so many samples.")]
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

    def check_rows(dataflow: str, task: str, who: Caller) -> None:
        """Refuse before anything is sent."""
        served.acting_for(who).tail(dataflow, task, lambda _rows: None)()

    @router.get(
        "/dataflows/{dataflow}/tasks/{task}/rows",
        response_class=EventSourceResponse,
        openapi_extra=scope(Verb.INSPECT),
        dependencies=[Depends(check_rows)],
    )
    async def live_rows(
        dataflow: str, task: str, who: Caller, most: MostSamples = None
    ) -> AsyncIterator[ServerSentEvent]:
        """Follow some of the rows that a task makes, or that a sink takes, about once a second; masked by policy."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[list[Any] | None] = asyncio.Queue(MOST_SHOWN)

        def put(rows: list[Any] | None) -> None:
            if queue.full():  # a slow reader sees the newest
                queue.get_nowait()
            queue.put_nowait(rows)

        def take(rows: list[Any] | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(put, rows)

        engine = served.acting_for(who)
        leave = await run_in_threadpool(engine.tail, dataflow, task, take)
        stop = served.events.follow(lambda event: take(None) if event is None else None)
        try:
            yield ServerSentEvent(data={"task": f"{dataflow}.{task}"}, event="begun", retry=RETRY_MS)
            while (most is None or most > 0) and (rows := await queue.get()) is not None:
                yield ServerSentEvent(data={"at": time.time(), "rows": rows}, event="rows")
                most = None if most is None else most - 1
        finally:
            leave()
            stop()

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
