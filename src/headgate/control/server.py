"""The engine's side of the control socket: a JSON object a line in, a JSON object a line out.

Each connection has a thread of its own. Nothing is held while a client is waited for, lines have a greatest length, and
a client that neither sends nor takes anything for a while is let go, so one that hangs keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.control.place import socket_place
from headgate.errors import HeadgateError, InputError, InvalidDataflow, os_reason

__all__ = ["Answerer", "listening"]

LONGEST_LINE = 16_000_000
PATIENCE_S = 30.0

Answerer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Does what a request asks for; raises :class:`~headgate.errors.HeadgateError` when that cannot be done."""


class _Handler(socketserver.StreamRequestHandler):
    timeout = PATIENCE_S

    def handle(self) -> None:
        assert isinstance(self.server, _Server)
        with contextlib.suppress(OSError):  # it hangs or is gone; what it has asked for is done all the same
            while line := self.rfile.readline(LONGEST_LINE + 1):
                answer, go_on = self.server.answer(line)
                self.wfile.write(json.dumps(answer).encode() + b"\n")
                if not go_on:
                    return


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, place: Path, answerer: Answerer) -> None:
        self._answerer = answerer
        super().__init__(str(place), _Handler, bind_and_activate=False)
        try:
            self.server_bind()
            place.chmod(0o600)
            self.server_activate()
        except BaseException:
            self.server_close()
            raise

    def answer(self, line: bytes) -> tuple[dict[str, Any], bool]:
        """The answer to a line, and whether more lines may follow it."""
        if not line.endswith(b"\n"):
            told = f"a request of more than {LONGEST_LINE:,} bytes, or one that does not end in a new line"
            return _refusal(InputError("BAD_REQUEST", told)), False
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise InputError("BAD_REQUEST", "a request is a JSON object")
            return {"answer": self._answerer(request)}, True
        except HeadgateError as error:
            return _refusal(error), True
        except (ValueError, RecursionError):
            return _refusal(InputError("BAD_REQUEST", "a request is one line of JSON")), True
        except Exception as error:
            return _refusal(HeadgateError("INTERNAL", f"internal error: {type(error).__name__}: {error}")), True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing is told on the terminal of the engine: whoever asked knows, or is gone."""


def _refusal(error: HeadgateError) -> dict[str, Any]:
    faults = [fault.as_dict() for fault in error.faults] if isinstance(error, InvalidDataflow) else []
    return {"error": {"condition": error.condition, "message": error.message, "faults": faults}}


@contextmanager
def listening(state: Path, answerer: Answerer) -> Iterator[Path]:
    """Listen on the socket of a state directory; the caller holds the directory, so an old socket is a dead one."""
    place = socket_place(state)
    place.unlink(missing_ok=True)
    try:
        server = _Server(place, answerer)
    except OSError as error:
        told = f"cannot listen at {place}: {os_reason(error)}"
        raise InputError("CANNOT_LISTEN", told) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="control", daemon=True)
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        server.server_close()
        place.unlink(missing_ok=True)
