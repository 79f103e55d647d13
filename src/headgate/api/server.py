"""Serves an application on the Unix socket of a state directory, and on the network.

Requests are read and answered in one thread, so a client that hangs keeps nobody waiting. A connection without a
request for a while is closed, and bodies have a greatest size (:mod:`headgate.api.limits`).
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.api import limits
from headgate.api.callers import peer_of
from headgate.api.network import Certificate, NetworkListener
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
def serving(
    state: Path,
    app: ASGIApp,
    listener: socket.socket | None = None,
    network: Sequence[NetworkListener] = (),
    end_s: float = END_S,
) -> Iterator[Path]:
    """Serve an application on the socket of a state directory, and on the network where somebody listens there.

    A supervisor hands over the sockets that it has bound.
    """
    if listener is None:
        with bound(state) as own, serving(state, app, own, network, end_s) as place:
            yield place
        return
    place = socket_place(state)
    doors = [(_server(app, None, end_s), listener)]
    doors += [(_server(app, one.certificate, end_s), one.socket) for one in network]
    work = threading.Thread(target=asyncio.run, args=(_serve(doors),), name="api", daemon=True)
    work.start()
    while not all(server.started for server, _ in doors) and work.is_alive():
        time.sleep(0.005)
    if not work.is_alive():
        raise InputError("CANNOT_LISTEN", f"Cannot serve the API on {place}.")
    try:
        yield place
    finally:
        for server, _ in doors:
            server.should_exit = True
        work.join(end_s + 1.0)


def _server(app: ASGIApp, certificate: Certificate | None, end_s: float) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        lifespan="off",
        log_config=QUIET,
        server_header=False,
        timeout_graceful_shutdown=max(int(end_s), 1),
        ssl_context_factory=None if certificate is None else lambda *_: certificate.context(),
    )
    return uvicorn.Server(config)


async def _serve(doors: Sequence[tuple[uvicorn.Server, socket.socket]]) -> None:
    await asyncio.gather(*(server.serve([listener]) for server, listener in doors))
