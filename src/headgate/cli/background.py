"""Work in another thread while the main one shows it, and Ctrl-C as an event."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

__all__ = ["SHOW_CURSOR", "in_background", "stop_signals"]

KILLED_STATUS = 130
SHOW_CURSOR = b"\x1b[?25h\n"

T = TypeVar("T")


def in_background(work: Callable[[], T], meanwhile: Callable[[], None]) -> T:
    """Do something in another thread and wait for it.

    Spark handles Ctrl-C itself when it is started in the main thread, and a thread that waits shows nothing.
    """
    done: list[T] = []
    raised: list[BaseException] = []

    def do() -> None:
        try:
            done.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    while thread.is_alive():
        meanwhile()
        thread.join(0.1)
    if raised:
        raise raised[0]
    return done[0]


@contextmanager
def stop_signals(stopping: threading.Event | None = None) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C (or TERM, or a closed terminal) sets; the second ends the process at once."""
    stopping = stopping or threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stopping.is_set():
            # What is under way is run again at the next start; Spark's process ends with this one.
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), SHOW_CURSOR)  # which the live tables hide
            os._exit(KILLED_STATUS)
        stopping.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in numbers}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)  # which a supervisor has blocked meanwhile
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
