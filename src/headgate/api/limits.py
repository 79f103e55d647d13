"""Limits on clients: the largest body, and how long a client may take to send or to read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Limits"]

BODY_BYTES = 16_000_000
PATIENCE_S = 30.0

T = TypeVar("T")


class Limits:
    """Refuses bodies that are too large, and gives up clients that neither send nor read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        taken, complete = 0, False

        async def limited_receive() -> Message:
            nonlocal taken, complete
            if complete:
                return await receive()  # waits for the client to leave, as long as the request is worked on
            message = await _in_time(receive())
            taken += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if taken > BODY_BYTES:
                raise HTTPException(413, f"a request has at most {BODY_BYTES:,} bytes")
            return message

        async def limited_send(message: Message) -> None:
            await _in_time(send(message))

        await self._app(scope, limited_receive, limited_send)


async def _in_time(step: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(step, PATIENCE_S)
    except TimeoutError:
        raise HTTPException(408, f"nothing was sent or read for {PATIENCE_S:.0f} s") from None
