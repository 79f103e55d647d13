"""An event simulation of how Spark schedules micro-batches: what the capacity model is judged by.

It knows nothing of Headgate (a test checks that) and of the model's formulas. Fragments have FAIR pools of their own,
with a minimum share of 1; a core that is free goes to the fragment that is furthest below its share, and no task is
ever stopped. Triggers are aligned on the clock. An epoch takes what waits, at most what its bucket holds, plans in the
driver, runs its stages one after the other, and commits; only then its readers have its rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["EventFragment", "simulate_events"]

PLANNING = 0.78
"""Of the driver's seconds of an epoch; the rest is the commit."""


@dataclass
class EventFragment:
    name: str
    stages: list[tuple[float, int]]
    """Reference core-seconds of a row, and partitions."""

    arrives_per_s: float = 0.0
    reads: int | None = None
    fixed_s: float = 0.1
    task_s: float = 0.01
    trigger_s: float = 1.0
    weight: float = 1.0
    limit_per_s: float | None = None
    """Rows a second, in a bucket that holds those of ``bucket_s`` seconds."""

    bucket_s: float = 1.0

    # State.
    taken: float = 0.0
    done: float = 0.0
    bucket: float = 0.0
    filled_at: float = 0.0
    rows: float = 0.0
    began: float = 0.0
    stage: int = 0
    ready: int = 0
    open: int = 0
    running: int = 0
    waited: float = 0.0
    counted: float = 0.0
    epochs: list[float] = field(default_factory=list)
    steady: float = 0.0
    """Rows done since measuring began."""


class _Clock:
    def __init__(self) -> None:
        self.events: list[tuple[float, int, str, int, int]] = []
        self.number = 0

    def at(self, when: float, what: str, fragment: int, core: int = -1) -> None:
        self.number += 1
        heapq.heappush(self.events, (when, self.number, what, fragment, core))


def _arrived(all_of: Sequence[EventFragment], each: EventFragment, now: float) -> float:
    return each.arrives_per_s * now if each.reads is None else all_of[each.reads].done


def _fairest(fragments: Sequence[EventFragment]) -> int | None:
    """Spark's FAIR comparator: who is below its minimum share first, then least running by weight, then by name."""

    def key(each: EventFragment) -> tuple[bool, float, str]:
        needy = each.running < 1
        return (not needy, each.running if needy else each.running / each.weight, each.name)

    open_ones = [place for place, each in enumerate(fragments) if each.ready]
    return min(open_ones, key=lambda place: key(fragments[place])) if open_ones else None


def simulate_events(fragments: Sequence[EventFragment], speeds: Sequence[float], seconds: float, warm_s: float) -> None:
    """Let time pass; ``steady``, ``waited`` and ``epochs`` of the fragments count from ``warm_s`` on."""
    clock = _Clock()
    free = sorted(range(len(speeds)), key=lambda core: -speeds[core])
    for place in range(len(fragments)):
        clock.at(0.0, "trigger", place)

    def start(place: int, now: float) -> None:
        each = fragments[place]
        if each.stage == len(each.stages):
            clock.at(now + each.fixed_s * (1 - PLANNING), "commit", place)
            return
        each.ready = each.open = each.stages[each.stage][1]

    def offer(now: float) -> None:
        while free and (place := _fairest(fragments)) is not None:
            each, core = fragments[place], free.pop(0)
            each.ready -= 1
            each.running += 1
            cost, partitions = each.stages[each.stage]
            clock.at(now + (each.rows * cost / partitions + each.task_s) / speeds[core], "task", place, core)

    while clock.events:
        now, _, what, place, core = heapq.heappop(clock.events)
        if now > seconds:
            break
        each = fragments[place]
        if what == "trigger":
            waiting = _arrived(fragments, each, now) - each.taken
            if each.limit_per_s is not None:
                most = each.limit_per_s * each.bucket_s
                each.bucket = min(each.bucket + (now - each.filled_at) * each.limit_per_s, most)
                waiting = min(waiting, each.bucket)
                each.bucket -= waiting
            each.filled_at = now
            if waiting <= 1e-9:
                clock.at(_next(now, each.trigger_s), "trigger", place)
                continue
            each.rows, each.began, each.stage = waiting, now, 0
            each.taken += waiting
            clock.at(now + each.fixed_s * PLANNING, "planned", place)
        elif what == "planned":
            start(place, now)
        elif what == "task":
            free.append(core)
            free.sort(key=lambda one: -speeds[one])
            each.running -= 1
            each.open -= 1
            if each.open == 0:
                each.stage += 1
                start(place, now)
        else:
            _commit(each, now, warm_s)
            clock.at(_next(each.began, each.trigger_s, now), "trigger", place)
        offer(now)


def _commit(each: EventFragment, now: float, warm_s: float) -> None:
    each.done += each.rows
    if each.began >= warm_s:
        each.steady += each.rows
        each.epochs.append(now - each.began)
        if each.reads is None:
            # Rows of an epoch arrived evenly; the last came at its beginning, or as long before as rows waited.
            last = each.taken / each.arrives_per_s
            each.waited += each.rows * (now - last + each.rows / each.arrives_per_s / 2)
            each.counted += each.rows


def _next(began: float, trigger_s: float, now: float | None = None) -> float:
    """The next trigger on the clock after an epoch's start, or at once if that is over."""
    due = began // trigger_s * trigger_s + trigger_s
    return due if now is None else max(due, now)
