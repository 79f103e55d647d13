"""A note of every request: what was asked, by whom, how it was answered and how long that took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["NoteRequest", "RequestLog"]

NoteRequest = Callable[[dict[str, Any]], None]
"""Takes the facts of a request."""


class RequestLog:
    """Notes requests when they have been answered."""

    def __init__(self, app: ASGIApp, note: NoteRequest) -> None:
        self._app, self._note = app, note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            who = scope.get("state", {}).get("admitted")
            client = scope.get("client")
            facts = {
                "method": scope["method"],
                "path": scope["path"],
                "route": getattr(scope.get("route"), "path", None),
                "status": status,
                "seconds": round(time.perf_counter() - began, 6),
                "principal": getattr(who, "name", None),
                "address": client[0] if client else "unix socket",
            }
            self._note(facts)
