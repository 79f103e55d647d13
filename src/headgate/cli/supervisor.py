"""Supervision: the process that the user starts runs the engine in a child, and starts another when that one dies.

The supervisor holds the lock of the state directory and the socket, and forks before Spark or any thread exists. The
child runs on as the command itself would. While none serves, the supervisor answers (:mod:`headgate.api.standby`).
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from headgate.api.network import NetworkListener
from headgate.api.standby import Standby, bound
from headgate.cli.background import SHOW_CURSOR
from headgate.cli.engine_link import AGAIN, EngineLink
from headgate.cli.notify import notify_service_manager
from headgate.cli.output import sentence_to_stderr
from headgate.errors import InputError
from headgate.model.status import EngineCrash
from headgate.service.restarts import BLAMELESS, SPARK_CRASHED, Restarts
from headgate.service.run import StateLock, scratch_of

__all__ = ["supervised"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FAILED = 1
PR_SET_CHILD_SUBREAPER = 36
LEAVE_S = 2.0
"""How long what a dead engine has left behind may take to end by itself."""


@contextmanager
def supervised(
    state: Path, network: Sequence[NetworkListener] = (), say: Callable[[str], None] = sentence_to_stderr
) -> Iterator[EngineLink]:
    """Run what follows in a child, again and again if it dies; this process leaves with the last one's status.

    A process that has threads or a Spark already, such as a test's, cannot be forked: what follows runs in it, without
    a supervisor.
    """
    if threading.active_count() > 1 or "pyspark" in sys.modules:
        yield EngineLink()
        return
    lock = StateLock(state)
    with bound(lock.path) as listener:
        supervisor = Supervisor(listener, network, say)
        link = supervisor.engine()
        if link is None:
            shutil.rmtree(scratch_of(lock.path), ignore_errors=True)  # also of engines that were killed
            raise typer.Exit(supervisor.status)
        link.lock, link.listener = lock, listener
        link.watch()
        yield link


class Supervisor:
    """Starts engines, one after the other."""

    def __init__(
        self,
        listener: socket.socket,
        network: Sequence[NetworkListener] = (),
        say: Callable[[str], None] = sentence_to_stderr,
    ) -> None:
        self.status = 0
        self._say = say
        self._selector = selectors.DefaultSelector()
        self._standby = Standby(listener, self._selector, network)
        self._restarts = Restarts()
        self._served_at: float | None = None
        self._child = 0
        self._ended: tuple[str, str] = ("", "")
        self._stopping = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self._channel = self._woken
        self._unread = b""

    def engine(self) -> EngineLink | None:
        """In each child, its link; in this process ``None``, once no further engine is to be started."""
        with suppress(OSError, AttributeError):  # so that nothing that an engine leaves behind stays a zombie
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        for end in (self._wake, self._woken):
            end.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, lambda woken: woken.recv(1 << 12))
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # so that it wakes this process up
        for number in SIGNALS:
            signal.signal(number, self._forward)
        self._standby.accept(True)
        crash = None
        while not self._stopping.is_set():
            link = self._start(crash)
            if link is not None:
                return link
            self.status = self._follow()
            if not (self.status == AGAIN or self.status < 0):
                break
            crash = self._rest()
        self.status = FAILED if self.status == AGAIN or self.status < 0 else self.status
        self._standby.close()
        return None

    def _start(self, crash: EngineCrash | None) -> EngineLink | None:
        """Fork; returns the link in the child."""
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal that comes between the fork and the child's own handlers must not get lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        self._child = os.fork()
        if self._child == 0:
            self._become_engine()
            ours.close()
            return EngineLink(theirs, served_at=self._served_at, crash=crash)
        with suppress(OSError):
            os.setpgid(self._child, self._child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        theirs.close()
        ours.setblocking(False)
        self._ended, self._unread = ("", ""), b""
        self._channel = ours
        self._selector.register(ours, selectors.EVENT_READ, self._hear)
        return None

    def _become_engine(self) -> None:
        """Leave all that is the supervisor's. A group of its own: Ctrl-C goes to the supervisor, which forwards it."""
        with suppress(OSError):
            os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # it may write to the terminal all the same
        self._selector.close()
        self._standby.close()
        self._wake.close()
        self._woken.close()

    def _follow(self) -> int:
        """Attend to an engine until it has ended; returns its status, negative for a signal."""
        while True:
            status = self._reap()
            if status is not None:
                break
            self._attend(1.0)
        if self._channel in {key.fileobj for key in self._selector.get_map().values()}:
            self._hear(self._channel)  # what it said last
        self._channel.close()
        if status == AGAIN or status < 0:
            self._end_rest_of_group()
        return status

    def _reap(self) -> int | None:
        """Take leave of all processes that have ended; returns the engine's status if it is among them."""
        with suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return None
                if process == self._child:
                    return os.waitstatus_to_exitcode(status)
        return None

    def _attend(self, patience_s: float) -> None:
        for key, _ in self._selector.select(patience_s):
            key.data(key.fileobj)

    def _end_rest_of_group(self) -> None:
        """Spark's process ends when its engine does; one that does not in time is killed."""
        until = time.monotonic() + LEAVE_S
        with suppress(ProcessLookupError, PermissionError):
            while time.monotonic() < until:
                os.killpg(self._child, 0)
                self._attend(0.02)
                self._reap()
            os.killpg(self._child, signal.SIGKILL)

    def _hear(self, channel: socket.socket) -> None:
        """Read what the engine reports."""
        with suppress(BlockingIOError, ConnectionError):
            while data := channel.recv(1 << 16):
                self._unread += data
            self._selector.unregister(channel)  # it has ended
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            self._note(json.loads(line))

    def _note(self, facts: dict[str, Any]) -> None:
        if "serving" in facts:
            self._served_at = self._served_at or time.monotonic()
            self._standby.accept(not facts["serving"])
            notify_service_manager("READY=1" if facts["serving"] else "STOPPING=1")
            if not facts["serving"]:
                self._standby.error = InputError("ENGINE_STOPPED", "The engine is being stopped.")
        elif "healthy" in facts:
            self._restarts = self._restarts.healthy()
        else:
            self._ended = facts["ended"], facts["message"]

    def _rest(self) -> EngineCrash | None:
        """Say why the engine has ended and wait a while; returns how it has, if a dataflow may be the cause."""
        if self._stopping.is_set():
            return None
        condition, reason = self._ended
        if not reason:
            reason = f"The engine's process was killed by signal {-self.status}"
        self._restarts = self._restarts.died(blameless=self._served_at is None or condition in BLAMELESS)
        pause_s, reason = self._restarts.pause_s, reason.rstrip(".")
        if sys.stdout.isatty():
            os.write(sys.stdout.fileno(), SHOW_CURSOR)
        self._say(f"{reason}. Starting again in {pause_s:g} s.")
        self._standby.error = InputError("ENGINE_STARTING", f"The engine is starting again. {reason}.")
        self._standby.accept(True)
        until = time.monotonic() + pause_s
        while not self._stopping.is_set() and time.monotonic() < until:
            self._attend(until - time.monotonic())
            self._reap()
        is_loop = self._restarts.is_loop
        return EngineCrash(reason, is_loop) if is_loop or condition == SPARK_CRASHED else None

    def _forward(self, number: int, frame: FrameType | None) -> None:
        """Hand a signal on to the engine."""
        del frame
        self._stopping.set()
        with suppress(ProcessLookupError):
            os.kill(self._child, number)
