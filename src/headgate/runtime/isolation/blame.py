"""Which task made the job of an epoch fail: the one that the failure names, or the one that a search identifies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from headgate.model.names import Signature
from headgate.runtime.compile.plan import CompiledPlan, Fragment
from headgate.runtime.isolation.quarantine import find_culprits
from headgate.runtime.isolation.watchdog import TimeLimitExceeded
from headgate.runtime.spark_internals.failures import named_culprit

__all__ = ["OVER_BUDGET", "Attempt", "before", "blame", "blame_for_time", "feeds_of_items"]

OVER_BUDGET = "TimeoutError: over its time budget"

Attempt = Callable[[Sequence[str], float | None], str | None]
"""Runs some tasks, for at most so long; returns why that failed, or ``None`` if it did not."""


def blame(error: Exception, feeds: Mapping[str, Sequence[str]], plan: CompiledPlan, attempt: Attempt) -> dict[str, str]:
    """The tasks and topics that made a job fail, with the reasons; none if that cannot be determined."""
    if isinstance(error, TimeLimitExceeded):
        return blame_for_time(feeds, plan, attempt)
    named = named_culprit(str(error))
    if named is not None and named[0] in feeds:
        return {named[0]: named[1]}
    return find_culprits(feeds, lambda items: attempt(items, None))


def blame_for_time(feeds: Mapping[str, Sequence[str]], plan: CompiledPlan, attempt: Attempt) -> dict[str, str]:
    """The task that exceeds its time budget, measured on top of what feeds it: a large micro-batch is no task's fault.

    Only tasks that state a budget are examined.
    """
    for item in feeds:
        task = plan.tasks.get(Signature(item))
        if task is None or task.time_budget_s is None:
            continue
        earlier = before(item, feeds)
        began = time.monotonic()
        if attempt(earlier, None) is not None:
            continue
        took_s = time.monotonic() - began
        if attempt([*earlier, item], took_s + task.time_budget_s) is not None:
            return {item: f"{OVER_BUDGET} of {task.time_budget_s:g} s for a micro-batch"}
    return {}


def before(item: str, feeds: Mapping[str, Sequence[str]]) -> list[str]:
    """All that feeds an item, directly or not, each after what feeds it."""
    needed: set[str] = set()
    waiting = list(feeds.get(item, ()))
    while waiting:
        source = waiting.pop()
        if source in feeds and source not in needed:
            needed.add(source)
            waiting += feeds[source]
    return [source for source in feeds if source in needed]


def feeds_of_items(plan: CompiledPlan, fragment: Fragment) -> dict[str, list[str]]:
    """The tasks of a fragment, sinks included, and its topics, with what feeds each; those that feed others first."""
    tasks = [plan.tasks[signature] for signature in fragment.tasks if signature in plan.tasks]
    items: dict[str, list[str]] = {t.signature: [f.source for f in t.feeds if not f.feedback] for t in tasks}
    return items | {topic.id: [feed.source for feed in topic.feeds] for topic in fragment.writes}
