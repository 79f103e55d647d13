"""The watchdog cancels jobs that take longer than any of their tasks may.

Python functions watch their time themselves (:mod:`headgate.tasks.row_errors`). What runs inside Spark does not: an
expression with a catastrophic pattern, an array that explodes. There the driver cancels the whole job, by its tag, and
searches for the task that took so long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Allowance", "TimeLimitExceeded", "Watchdog"]

SLACK_S = 1.0
"""What a job may take on top of all else."""

USUAL_TIMES = 4.0
"""How many times as long as usual a job may take on top of a task's budget."""

WARM = 3
"""Epochs before the usual time is known: in the first ones code is compiled and workers start."""

COLD_S = 30.0
"""What an epoch may take on top of a budget until the usual time is known."""


@dataclass(slots=True)
class Allowance:
    """How long the job of an epoch may take, given the smallest budget of its tasks.

    >>> allowance = Allowance()
    >>> allowance.limit_s(1.0)
    31.0
    >>> for _ in range(5):
    ...     allowance.note(0.5)
    >>> allowance.limit_s(1.0)
    4.0
    """

    usual_s: float = 0.0
    epochs: int = 0

    def limit_s(self, budget_s: float) -> float:
        if self.epochs < WARM:
            return budget_s + COLD_S
        return budget_s + SLACK_S + USUAL_TIMES * self.usual_s

    def note(self, seconds: float) -> None:
        """Note how long an epoch took: the usual is the mean, recent ones counting more."""
        self.epochs += 1
        self.usual_s += (seconds - self.usual_s) / min(self.epochs, 10)


class TimeLimitExceeded(Exception):
    """A job exceeded its time limit and was cancelled."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"TimeoutError: took longer than {limit_s:.3g} s")


class Watchdog:
    """Cancels the jobs of one tag; the thread that runs them must have the tag."""

    def __init__(self, cancel: Callable[[str], None], tag: str) -> None:
        self._cancel = cancel
        self.tag = tag

    @contextmanager
    def watching(self, limit_s: float | None) -> Iterator[None]:
        """Let jobs run for so long, or without a limit; raises :class:`TimeLimitExceeded` when a job is cancelled."""
        if limit_s is None:
            yield
            return
        is_over = threading.Event()

        def cancel() -> None:
            is_over.set()
            self._cancel(self.tag)

        timer = threading.Timer(limit_s, cancel)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:
            if is_over.is_set():
                raise TimeLimitExceeded(limit_s) from error
            raise
        finally:
            timer.cancel()
