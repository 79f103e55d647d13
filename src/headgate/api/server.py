"""Serves an application on the Unix socket of a state directory.

Requests are read and answered in one thread, so a client that hangs keeps nobody waiting. A connection without a
request for a while is closed, and bodies have a greatest size (:mod:`headgate.api.limits`).
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.api import limits
from headgate.api.callers import peer_of
from headgate.api.place import socket_place
from headgate.api.standby import bound
from headgate.errors import InputError

__all__ = ["serving"]

END_S = 5.0
"""How long requests may take to end when the engine stops."""

QUIET = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"none": {"class": "logging.NullHandler"}},
    "loggers": {"uvicorn": {"handlers": ["none"], "propagate": False}},
}
"""Nothing is printed on the engine's terminal: clients get every error as an answer."""


class _Connection(H11Protocol):
    """A connection that is closed when it brings no new request for a while."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, "peer": peer_of(transport.get_extra_info("socket"))}
        self._watch(None, first=True)

    def _watch(self, seen: object, first: bool = False) -> None:
        cycle: Any = self.cycle  # none until the first request
        idle = cycle is None or cycle.response_complete
        if idle and cycle is seen and not first:
            self.transport.close()
        elif not self.transport.is_closing():
            self.loop.call_later(limits.PATIENCE_S, self._watch, cycle)


@contextmanager
def serving(state: Path, app: ASGIApp, listener: socket.socket | None = None) -> Iterator[Path]:
    """Serve an application on the socket of a state directory; a supervisor hands over the one that it has bound."""
    if listener is None:
        with bound(state) as own, serving(state, app, own) as place:
            yield place
        return
    place = socket_place(state)
    server = uvicorn.Server(
        uvicorn.Config(app, http=_Connection, lifespan="off", log_config=QUIET, timeout_graceful_shutdown=int(END_S))
    )
    work = threading.Thread(target=asyncio.run, args=(server.serve([listener]),), name="api", daemon=True)
    work.start()
    while not server.started and work.is_alive():
        time.sleep(0.005)
    if not server.started:
        raise InputError("CANNOT_LISTEN", f"Cannot serve the API on {place}.")
    try:
        yield place
    finally:
        server.should_exit = True
        work.join(END_S + 1.0)
