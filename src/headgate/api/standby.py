"""Answers in place of an engine that is starting: every request gets a problem document with status 503.

The process that supervises the engine owns the socket. It hands it to each engine, and answers itself meanwhile.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from headgate.api.network import NetworkListener
from headgate.api.place import socket_place
from headgate.api.problems import CONTENT_TYPE, problem_of
from headgate.errors import HeadgateError, InputError, os_reason

__all__ = ["Standby", "bound"]

RETRY_AFTER_S = 1
MOST_BYTES = 20_000_000
MOST_CONNECTIONS = 1_000


@contextmanager
def bound(state: Path) -> Iterator[socket.socket]:
    """The socket of a state directory, for this user only. It is removed in the end.

    The caller has locked the directory, so a socket file that is already there belongs to an engine that has ended.
    """
    place, owner = socket_place(state), os.getpid()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            place.unlink(missing_ok=True)
            listener.bind(str(place))
            place.chmod(0o600)  # before it listens, so nobody else can connect
        except OSError as error:
            message = f"Cannot listen on {place}: {os_reason(error)}."
            raise InputError("CANNOT_LISTEN", message) from None
        try:
            yield listener
        finally:
            if os.getpid() == owner:  # an engine's process leaves it to its supervisor
                place.unlink(missing_ok=True)


class Standby:
    """Answers on listening sockets; a selector says when there is something to do."""

    def __init__(
        self, listener: socket.socket, selector: selectors.BaseSelector, network: Sequence[NetworkListener] = ()
    ) -> None:
        self.error = InputError("ENGINE_STARTING", "The engine is starting.")
        """What requests are answered."""

        self._contexts: dict[socket.socket, ssl.SSLContext | None] = {listener: None}
        for one in network:
            self._contexts[one.socket] = None if one.certificate is None else one.certificate.context()
        for each in self._contexts:
            each.listen(128)
            each.setblocking(False)
        self._selector = selector
        self._accepting = False
        self._partial: dict[socket.socket, bytes] = {}

    def accept(self, wanted: bool) -> None:
        """Take new connections, or leave them to the engine."""
        for listener in self._contexts if wanted is not self._accepting else ():
            if wanted:
                self._selector.register(listener, selectors.EVENT_READ, self._take)
            else:
                self._selector.unregister(listener)
        self._accepting = wanted

    def close(self) -> None:
        """Close all connections; in a forked process, its copies of them."""
        for connection in self._partial:
            connection.close()
        self._partial.clear()

    def _take(self, listener: socket.socket) -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            if len(self._partial) >= MOST_CONNECTIONS:
                self._leave(next(iter(self._partial)))
            connection.setblocking(False)
            context = self._contexts[listener]
            if context is not None:  # its handshake is made as it is read
                connection = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            self._partial[connection] = b""
            self._selector.register(connection, selectors.EVENT_READ, self._read)

    def _read(self, connection: socket.socket) -> None:
        """Read on; a request must be whole before it is answered, or its sender would not see the answer."""
        try:
            data = connection.recv(1 << 16)
            while isinstance(connection, ssl.SSLSocket) and connection.pending():
                data += connection.recv(1 << 16)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError:
            data = b""
        request = self._partial[connection] = self._partial[connection] + data
        if data and not _is_whole(request):
            return
        if data:
            with suppress(OSError):
                connection.send(ALIVE if request.startswith(b"GET /livez ") else _response(self.error))
        self._leave(connection)

    def _leave(self, connection: socket.socket) -> None:
        self._partial.pop(connection, None)
        with suppress(KeyError):
            self._selector.unregister(connection)
        connection.close()


def _is_whole(request: bytes) -> bool:
    """Whether a request has come to its end, or is too long to wait for that.

    >>> _is_whole(b"GET / HTTP/1.1\\r\\n\\r\\n"), _is_whole(b"PUT / HTTP/1.1\\r\\nContent-Length: 2\\r\\n\\r\\n1")
    (True, False)
    """
    head, end, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\ncontent-length: *(\d{1,12})", head)
    return len(request) > MOST_BYTES or (bool(end) and len(body) >= int(length[1] if length else 0))


def _alive() -> bytes:
    body = b'{"ready":true,"checks":[]}'
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    return head.encode() + b"\r\n" + body


ALIVE = _alive()
"""What says that the service is alive, though its engine is not yet."""


def _response(error: HeadgateError) -> bytes:
    body = json.dumps(problem_of(error)).encode()
    head = f"Content-Type: {CONTENT_TYPE}\r\nRetry-After: {RETRY_AFTER_S}\r\nContent-Length: {len(body)}\r\n"
    return f"HTTP/1.1 503 Service Unavailable\r\n{head}Connection: close\r\n\r\n".encode() + body
