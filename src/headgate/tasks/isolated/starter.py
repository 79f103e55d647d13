"""The process that functions' processes are forked from, with their imports done and nothing else in its memory.

    python -m headgate.tasks.isolated.starter FILE_DESCRIPTOR

A worker sends it one end of a connection; it forks a process that serves that end. A process whose worker closes the
connection is killed, and a worker whose process ends gets the reason as the last message. It ends when the last
worker does.
"""

from __future__ import annotations

import gc
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.tasks.isolated.confinement import user_of
from headgate.tasks.isolated.frames import send

__all__ = ["Starter"]

MOST = 512
"""Processes at once."""


@dataclass(frozen=True, slots=True)
class _Running:
    process: int
    end: int
    """Becomes readable when the process has ended."""

    connection: socket.socket
    folder: Path


class Starter:
    """Forks processes as they are asked for, and looks after them."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests, self._poll = requests, select.poll()
        self._poll.register(requests, select.POLLIN)
        self._by_end: dict[int, _Running] = {}
        self._by_connection: dict[int, _Running] = {}

    def run(self) -> None:
        """Until the last worker has left."""
        try:
            self._serve()
        finally:
            for running in list(self._by_end.values()):
                with suppress(ProcessLookupError):
                    os.kill(running.process, signal.SIGKILL)
                self._note_end(running)

    def _serve(self) -> None:
        while True:
            for number, event in self._poll.poll():
                if number == self._requests.fileno():
                    if not self._serve_request():
                        return
                elif number in self._by_end:
                    self._note_end(self._by_end[number])
                elif number in self._by_connection and event & (select.POLLHUP | select.POLLERR):
                    self._poll.unregister(number)
                    with suppress(ProcessLookupError):
                        os.kill(self._by_connection[number].process, signal.SIGKILL)

    def _serve_request(self) -> bool:
        text, connections, _, _ = socket.recv_fds(self._requests, 64, 1)
        for number in connections:
            self._fork(socket.socket(fileno=number))
        return bool(text)

    def _fork(self, connection: socket.socket) -> None:
        if len(self._by_end) >= MOST:
            send(connection, {"ended": f"was not started: {MOST} functions run already"})
            connection.close()
            return
        folder = Path(tempfile.mkdtemp(prefix="headgate-function-"))
        process = os.fork()
        if process == 0:
            self._become_child(connection, folder)
        running = _Running(process, os.pidfd_open(process), connection, folder)
        self._by_end[running.end] = self._by_connection[connection.fileno()] = running
        self._poll.register(running.end, select.POLLIN)
        self._poll.register(connection, 0)

    def _become_child(self, connection: socket.socket, folder: Path) -> None:
        try:
            from headgate.tasks.isolated.serving import serve

            user = user_of(os.getpid())
            if user is not None:
                os.chown(folder, user, user)
            here = connection.fileno()
            silent = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(silent, number)
            os.closerange(3, here)
            os.closerange(here + 1, 1 << 16)
            os.setsid()
            serve(connection, folder, user)
        finally:
            os._exit(1)

    def _note_end(self, running: _Running) -> None:
        _, status, used = os.wait4(running.process, 0)
        code = os.waitstatus_to_exitcode(status)
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        running.connection.setblocking(False)
        with suppress(OSError):
            send(running.connection, {"ended": f"{how}, at {used.ru_maxrss / 1024:,.0f} MiB of memory"})
        for number in (running.end, running.connection.fileno()):
            with suppress(KeyError):
                self._poll.unregister(number)
        del self._by_end[running.end], self._by_connection[running.connection.fileno()]
        os.close(running.end)
        running.connection.close()
        shutil.rmtree(running.folder, ignore_errors=True)


def _main() -> None:
    import pandas  # noqa: F401
    import pyarrow.compute  # noqa: F401

    import headgate.tasks.isolated.serving
    import headgate.tasks.user_defined  # noqa: F401

    requests = socket.socket(fileno=int(sys.argv[1]))
    gc.collect()
    gc.freeze()
    Starter(requests).run()


if __name__ == "__main__":
    _main()
