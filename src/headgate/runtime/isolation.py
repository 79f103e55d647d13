"""Isolation: a task that raises takes down only what is behind it.

All tasks of a fragment run in one Spark job, and one that raises fails the job. The fragment then looks for the tasks
that raise, by running the epoch's rows through fewer and fewer of them, and runs what is left of the plan without them.
A task that was found out rests, longer each time, and is tried again with the rows of a later epoch.
"""

from __future__ import annotations

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
    found = set(culprits)
    for task, sources in feeds.items():
        if not found.isdisjoint(sources):
            found.add(task)
    return found


def find_culprits(feeds: Mapping[str, Collection[str]], trial: Trial) -> dict[str, str]:
    """The tasks that fail though all before them do not, each with the reason.

    ``feeds`` lists tasks, each after those that feed it. Every culprit costs a number of trials that grows with the
    logarithm of the number of tasks. None is found where the rows fail by themselves, or not again.

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
            told = trial(passing + open_tasks[:middle])
            fine, failing = (middle, failing) if told is None else (fine, middle)
            reason = told or reason
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


@dataclass(slots=True)
class Quarantine:
    """Tasks that raised, and until when they rest."""

    clock: Callable[[], float] = time.monotonic
    _resting: dict[str, _Rest] = field(default_factory=dict)

    def put(self, task: str, reason: str) -> None:
        """Let a task rest, twice as long as the last time if it has just been tried again."""
        last = self._resting.get(task)
        length_s = FIRST_REST_S if last is None else min(2 * last.length_s, LONGEST_REST_S)
        self._resting[task] = _Rest(reason, self.clock() + length_s, length_s)

    def resting(self) -> set[str]:
        """The tasks that are not to be run now."""
        now = self.clock()
        return {task for task, rest in self._resting.items() if now < rest.until}

    def passed(self, tasks: Collection[str]) -> None:
        """Forget what there was against tasks that have run."""
        for task in set(tasks) & self._resting.keys():
            del self._resting[task]

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why tasks rest, or wait to be tried again."""
        return {task: rest.reason for task, rest in self._resting.items()}
