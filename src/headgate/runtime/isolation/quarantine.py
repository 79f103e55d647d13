"""Isolation: a task that raises takes down only the tasks that it feeds.

All tasks of a fragment run in one Spark job, and one that raises fails the job. The fragment then searches for the
tasks that raise, by running the epoch's rows through fewer and fewer of them, and runs the rest of the plan without
them. Such a task rests, longer each time, and is tried in the background on the rows of a later epoch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Quarantine", "behind", "find_culprits"]

FIRST_REST_S, LONGEST_REST_S = 1.0, 300.0

Trial = Callable[[Sequence[str]], str | None]
"""Runs some tasks, all that feed them among them; returns why that failed, or ``None`` if it did not."""


def behind(culprits: Collection[str], feeds: Mapping[str, Collection[str]]) -> set[str]:
    """The culprits and all that their rows reach; ``feeds`` lists tasks, each after those that feed it.

    >>> sorted(behind({"b"}, {"a": [], "b": ["a"], "c": ["b"], "d": ["a"], "e": ["c", "d"]}))
    ['b', 'c', 'e']
    """
    reached = set(culprits)
    for task, sources in feeds.items():
        if not reached.isdisjoint(sources):
            reached.add(task)
    return reached


def find_culprits(feeds: Mapping[str, Collection[str]], trial: Trial) -> dict[str, str]:
    """The tasks that fail though all before them do not, each with the reason.

    ``feeds`` lists tasks, each after those that feed it. Every culprit costs a number of trials that grows with the
    logarithm of the number of tasks. The result is empty where the rows fail without any task, or do not fail again.

    >>> feeds = {"a": [], "b": ["a"], "c": ["a"], "d": ["c"], "e": ["b", "d"]}
    >>> find_culprits(feeds, lambda tasks: "raises" if "c" in tasks else None)
    {'c': 'raises'}
    """
    if trial([]) is not None:
        return {}
    culprits: dict[str, str] = {}
    passing: list[str] = []
    open_tasks = list(feeds)
    while open_tasks and trial(passing + open_tasks) is not None:
        fine, failing, reason = 0, len(open_tasks), ""
        while failing - fine > 1:
            middle = (fine + failing) // 2
            failure = trial(passing + open_tasks[:middle])
            fine, failing = (middle, failing) if failure is None else (fine, middle)
            reason = failure or reason
        culprit = open_tasks[failing - 1]
        culprits[culprit] = reason or trial([*passing, *open_tasks[:failing]]) or "it failed once"
        passing += open_tasks[:fine]
        gone = behind({culprit}, feeds)
        open_tasks = [task for task in open_tasks[failing:] if task not in gone]
    return culprits


@dataclass(slots=True)
class _Rest:
    reason: str
    until: float
    length_s: float
    by_trial: bool
    is_tried: bool = False
    is_back: bool = False
    missed: int = 0


@dataclass(slots=True)
class Quarantine:
    """Tasks that raised, and until when they rest.

    A task that has rested is tried in the background first, so that the others do not pay if it raises again. One that
    comes back is remembered for as long as it has rested: if it raises again within that time, its next rest is twice
    as long.
    """

    clock: Callable[[], float] = time.monotonic
    _rests: dict[str, _Rest] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, task: str, reason: str, *, by_trial: bool = True) -> None:
        """Let a task rest, twice as long as the last time if that was not long ago.

        Without ``by_trial`` it comes back by itself after its rest: for tasks that cost the others nothing.
        """
        with self._lock:
            last = self._rests.get(task)
            length_s = FIRST_REST_S if last is None else min(2 * last.length_s, LONGEST_REST_S)
            missed = 0 if last is None or last.is_back else last.missed
            self._rests[task] = _Rest(reason, self.clock() + length_s, length_s, by_trial, missed=missed)

    def resting(self) -> set[str]:
        """The tasks that are not to be run now."""
        now = self.clock()
        with self._lock:
            return {
                task for task, rest in self._rests.items() if not rest.is_back and (rest.by_trial or now < rest.until)
            }

    def due(self) -> set[str]:
        """The tasks that have rested and are to be tried."""
        now = self.clock()
        with self._lock:
            return {
                task
                for task, rest in self._rests.items()
                if rest.by_trial and not rest.is_tried and not rest.is_back and now >= rest.until
            }

    def try_now(self, tasks: Collection[str], is_tried: bool = True) -> None:
        """Note that tasks are being tried, or that they could not be."""
        with self._lock:
            for task in set(tasks) & self._rests.keys():
                self._rests[task].is_tried = is_tried

    def passed(self, tasks: Collection[str]) -> None:
        """Let tasks that did not raise come back; those that have been back for long enough are forgotten."""
        now = self.clock()
        with self._lock:
            for task in set(tasks) & self._rests.keys():
                rest = self._rests[task]
                if not rest.is_back and (rest.is_tried or now >= rest.until):
                    rest.is_back, rest.is_tried, rest.until = True, False, now + rest.length_s
                elif rest.is_back and now >= rest.until:
                    del self._rests[task]

    def forget(self, task: str) -> None:
        """Forget a task that no longer exists."""
        with self._lock:
            self._rests.pop(task, None)

    def miss(self, tasks: Collection[str], rows: int) -> None:
        """Note that rows have passed while tasks rested."""
        with self._lock:
            for task in set(tasks) & self._rests.keys():
                self._rests[task].missed += rows

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why tasks rest, or wait to be tried again, with what they have missed."""
        with self._lock:
            return {task: _described(rest) for task, rest in self._rests.items() if not rest.is_back}


def _described(rest: _Rest) -> str:
    return rest.reason if not rest.missed else f"{rest.reason} ({rest.missed:,} rows have passed it since)"
