"""Who looks at the rows of tasks, and what they are shown: some rows of an epoch now and then, while somebody looks.

Nothing is done for tasks that nobody looks at.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from headgate.model.names import Signature

__all__ = ["MOST_ROWS", "Tails", "TakeRows"]

EVERY_S = 1.0
"""How often rows of a task are shown at most."""

MOST_ROWS = 20
"""How many rows are shown at a time."""

TakeRows = Callable[[Sequence[str]], None]
"""Takes rows as JSON."""


class Tails:
    """The viewers of an engine's tasks. Any thread may come and go."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._viewers: dict[Signature, list[TakeRows]] = {}
        self._shown: dict[Signature, float] = {}

    def follow(self, task: Signature, viewer: TakeRows) -> Callable[[], None]:
        """Show somebody rows of a task from now on; returns what ends that."""
        with self._lock:
            self._viewers.setdefault(task, []).append(viewer)

        def leave() -> None:
            with self._lock:
                viewers = self._viewers.get(task, [])
                if viewer in viewers:
                    viewers.remove(viewer)
                if not viewers:
                    self._viewers.pop(task, None)
                    self._shown.pop(task, None)

        return leave

    def due(self, tasks: Iterable[Signature]) -> list[Signature]:
        """The tasks of which rows are to be shown now.

        >>> now = [0.0]
        >>> tails, task = Tails(lambda: now[0]), Signature("t")
        >>> leave = tails.follow(task, print)
        >>> tails.due([task, Signature("u")]), tails.due([task])
        (['t'], [])
        >>> now[0] = 2.0
        >>> tails.due([task])
        ['t']
        >>> leave()
        >>> tails.due([task])
        []
        """
        if not self._viewers:
            return []
        now = self._clock()
        with self._lock:
            due = [one for one in tasks if one in self._viewers and now - self._shown.get(one, -EVERY_S) >= EVERY_S]
            self._shown.update(dict.fromkeys(due, now))
        return due

    def show(self, task: Signature, rows: Sequence[str]) -> None:
        """Show rows of a task to all who look at it."""
        with self._lock:
            viewers = list(self._viewers.get(task, ()))
        for viewer in viewers:
            viewer(rows)
