"""The clients of a running engine's API: at once, or with ``await``. The command line uses the first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from headgate.api.event_lines import EventLines, StreamEvent
from headgate.api.problems import CONTENT_TYPE, error_of
from headgate.api.requests import ApiRequest, ApiRequests, rows_path
from headgate.api.target import ApiTarget, NotNowError, SocketTarget, UrlTarget
from headgate.errors import HeadgateError, InputError

__all__ = ["AsyncEngineClient", "EngineClient"]

RETRY_EVERY_S = 0.5
PATIENCE_S = 120.0
"""How long a request waits for an engine that is being started again."""

Answer = dict[str, Any]


class EngineClient(ApiRequests[Answer]):
    """Sends requests to the engine of a state directory, or to a service at a URL; raises what is refused.

    A request whose engine dies, or is just being started, is sent again until there is an answer; ``waiting`` is called
    with the reason, once.
    """

    def __init__(
        self,
        state: Path | str | ApiTarget,
        waiting: Callable[[str], None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._target = _target(state)
        self._waiting, self._patience_s = waiting, patience_s
        self._http = self._target.client()

    @classmethod
    def at(cls, url: str, token: str | None = None, certificates: Path | None = None) -> Self:
        """A client of a service on the network."""
        return cls(UrlTarget(url, token, certificates))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def events(self, *topics: str, after: str | None = None) -> Iterator[StreamEvent]:
        """Follow what happens, for ever; when the connection breaks it goes on where it was.

        ``after`` is the id of the last event that was seen before.
        """
        lines, patience = EventLines(after), _Patience(self._target, self._patience_s, self._waiting)
        while True:
            try:
                self._target.check()
                with self._http.stream(
                    "GET", "/events", params={"topics": topics}, headers=lines.headers()
                ) as response:
                    if response.is_error:
                        response.read()
                        _answer(response)
                    for line in response.iter_lines():
                        if (event := lines.take(line)) is not None:
                            patience = _Patience(self._target, self._patience_s, self._waiting)
                            yield event
            except httpx.TransportError:
                patience.check(NotNowError(self._target.gone()))
            except NotNowError as error:
                patience.check(error)
            time.sleep(RETRY_EVERY_S)

    def rows(self, dataflow: str, task: str, most: int | None = None) -> Iterator[Any]:
        """Follow some of the rows of a task, about once a second; ends with the engine, or after ``most`` samples."""
        lines, query = EventLines(), {} if most is None else {"most": most}
        self._target.check()
        with self._http.stream("GET", rows_path(dataflow, task), params=query, timeout=None) as response:
            if response.is_error:
                response.read()
                _answer(response)
            for line in response.iter_lines():
                event = lines.take(line)
                if event is not None and event.topic == "rows":
                    yield event.data

    def send(self, request: ApiRequest) -> Answer:
        patience = _Patience(self._target, self._patience_s, self._waiting)
        built = _built(self._http, request)
        while True:
            try:
                self._target.check()
                return _answer(self._http.send(built))
            except httpx.TransportError:
                patience.check(NotNowError(self._target.gone()))
            except NotNowError as error:
                patience.check(error)
            time.sleep(RETRY_EVERY_S)


class AsyncEngineClient(ApiRequests[Awaitable[Answer]]):
    """The same requests, with ``await``."""

    def __init__(self, state: Path | str | ApiTarget, patience_s: float = PATIENCE_S) -> None:
        self._target, self._patience_s = _target(state), patience_s
        self._http = self._target.async_client()

    @classmethod
    def at(cls, url: str, token: str | None = None, certificates: Path | None = None) -> Self:
        """A client of a service on the network."""
        return cls(UrlTarget(url, token, certificates))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def events(self, *topics: str, after: str | None = None) -> AsyncIterator[StreamEvent]:
        """Follow what happens, as :meth:`EngineClient.events` does."""
        lines, patience = EventLines(after), _Patience(self._target, self._patience_s, None)
        while True:
            try:
                self._target.check()
                asked = self._http.stream("GET", "/events", params={"topics": topics}, headers=lines.headers())
                async with asked as response:
                    if response.is_error:
                        await response.aread()
                        _answer(response)
                    async for line in response.aiter_lines():
                        if (event := lines.take(line)) is not None:
                            patience = _Patience(self._target, self._patience_s, None)
                            yield event
            except httpx.TransportError:
                patience.check(NotNowError(self._target.gone()))
            except NotNowError as error:
                patience.check(error)
            await asyncio.sleep(RETRY_EVERY_S)

    async def send(self, request: ApiRequest) -> Answer:
        patience = _Patience(self._target, self._patience_s, None)
        built = _built(self._http, request)
        while True:
            try:
                self._target.check()
                return _answer(await self._http.send(built))
            except httpx.TransportError:
                patience.check(NotNowError(self._target.gone()))
            except NotNowError as error:
                patience.check(error)
            await asyncio.sleep(RETRY_EVERY_S)


class _Patience:
    """How long a request is sent again."""

    def __init__(self, target: ApiTarget, patience_s: float, waiting: Callable[[str], None] | None) -> None:
        self._target, self._until, self._waiting = target, time.monotonic() + patience_s, waiting

    def check(self, error: NotNowError) -> None:
        """Raise the final error unless an engine may still answer."""
        starting = error.final.condition == "ENGINE_STARTING"
        if time.monotonic() >= self._until or not (starting or self._target.may_return()):
            raise error.final from None
        if self._waiting is not None:
            self._waiting(error.final.message)
            self._waiting = None


def _target(where: Path | str | ApiTarget) -> ApiTarget:
    return SocketTarget(Path(where)) if isinstance(where, str | Path) else where


def _built(http: httpx.Client | httpx.AsyncClient, request: ApiRequest) -> httpx.Request:
    return http.build_request(
        request.method, request.path, json=request.body, headers=request.headers, params=request.query
    )


def _answer(response: httpx.Response) -> Answer:
    if response.headers.get("content-type", "") == CONTENT_TYPE:
        error: HeadgateError = error_of(response.json())
        raise NotNowError(error) if error.condition == "ENGINE_STARTING" else error
    if response.is_error:
        raise InputError("BAD_REQUEST", f"The engine cannot read the request: {response.text[:200]}")
    answer: Answer = response.json() if response.content else {}
    return answer
