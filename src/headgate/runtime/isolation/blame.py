"""Who is to blame when the job of an epoch fails: the task that the failure names, or the one that a search finds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.isolation.quarantine import find_culprits
from headgate.runtime.isolation.watchdog import TimeLimitExceeded
from headgate.runtime.spark_internals.failures import named_culprit

__all__ = ["Attempt", "before", "blame", "blame_for_time"]

Attempt = Callable[[Sequence[str], float | None], str | None]
"""Runs some tasks, for at most so long; returns why that failed, or ``None`` if it did not."""


def blame(error: Exception, feeds: Mapping[str, Sequence[str]], plan: CompiledPlan, attempt: Attempt) -> dict[str, str]:
    """The tasks and topics that made a job fail, with the reasons; none if that cannot be told."""
    if isinstance(error, TimeLimitExceeded):
        return blame_for_time(feeds, plan, attempt)
    named = named_culprit(str(error))
    if named is not None and named[0] in feeds:
        return {named[0]: named[1]}
    return find_culprits(feeds, lambda items: attempt(items, None))


def blame_for_time(feeds: Mapping[str, Sequence[str]], plan: CompiledPlan, attempt: Attempt) -> dict[str, str]:
    """The task that takes longer than it may, though what is before it does not.

    A large micro-batch is nobody's fault: a task is blamed if, on top of what is before it, it takes longer than its
    own budget. Only those that state one are looked at.
    """
    for item in feeds:
        task = next((found for found in plan.tasks.values() if found.signature == item), None)
        if task is None or task.time_budget_s is None:
            continue
        earlier = before(item, feeds)
        began = time.monotonic()
        if attempt(earlier, None) is not None:
            continue
        took_s = time.monotonic() - began
        told = attempt([*earlier, item], took_s + task.time_budget_s)
        if told is not None:
            return {item: f"TimeoutError: over its time budget of {task.time_budget_s:g} s for a micro-batch"}
    return {}


def before(item: str, feeds: Mapping[str, Sequence[str]]) -> list[str]:
    """All that feeds an item, each after what feeds it."""
    needed: set[str] = set()
    waiting = list(feeds.get(item, ()))
    while waiting:
        source = waiting.pop()
        if source in feeds and source not in needed:
            needed.add(source)
            waiting += feeds[source]
    return [source for source in feeds if source in needed]
