"""Where it is stuck, in words: the fragment that cannot keep up, and the task in it that takes most of its time.

Fragments hand rows over through durable topics, so a slow one does not hold up those before it: rows wait where the
cause is, and the longest wait, in seconds of work, names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headgate.model.cluster.observation import FragmentObservation, Observation, TaskObservation

__all__ = ["Bottleneck", "bottleneck", "busy_share"]

WAITING_S = 2.0
"""Rows for so many seconds may wait before a fragment is called a bottleneck."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What holds others up, if something does."""

    task: str | None
    """Its signature."""

    name: str | None
    dataflows: tuple[str, ...]
    cause: str
    """``none``, ``cpu``, ``start-up`` (of batches), ``delivery`` or ``stalled``."""

    sentence: str
    busy: float | None = None
    waiting: float | None = None
    waiting_s: float | None = None
    """How long it would take for what waits, at the present rate."""

    growing: bool = False


def bottleneck(recent: Sequence[Observation]) -> Bottleneck:
    """The cause of the longest wait in the last intervals, oldest first; a batch may take longer than one of them."""
    if not recent:
        return Bottleneck(None, None, (), "none", "Nothing was measured yet; an interval takes five seconds.")
    seen = _together(recent)
    stuck = [fragment for fragment in seen.fragments if _is_stuck(fragment, seen)]
    if not stuck:
        return _none(seen)
    worst = max(stuck, key=lambda fragment: _waiting_s(fragment, seen))
    task = _costliest(worst, seen)
    cause = _cause(worst)
    waits, waits_s, busy = worst.rows_behind or 0, _waiting_s(worst, seen), busy_share(worst, seen)
    growing = worst.rows_arrived is not None and worst.rows_arrived > 1.02 * worst.rows_in
    name = task.name if task is not None else worst.id
    sentence = f"{name} is the bottleneck ({_WORDS[cause]}): {waits:,} rows wait"
    sentence += "" if cause == "stalled" else f", {waits_s:,.0f} s of work"
    sentence += ", and they become more." if growing else "."
    return Bottleneck(
        None if task is None else task.task,
        name,
        () if task is None else task.dataflows,
        cause,
        sentence,
        busy,
        float(waits),
        None if cause == "stalled" else waits_s,
        growing,
    )


_WORDS = {
    "cpu": "its tasks take the time",
    "start-up": "to start its batches takes the time",
    "delivery": "to deliver its rows takes the time",
    "stalled": "it has ended no batch lately",
}


def _together(recent: Sequence[Observation]) -> Observation:
    """The last interval, with what its fragments did in all of them."""
    last = recent[-1]
    before = [{fragment.id: fragment for fragment in seen.fragments} for seen in recent[:-1]]
    fragments = []
    for fragment in last.fragments:
        parts = [*(seen[fragment.id] for seen in before if fragment.id in seen), fragment]
        arrived = [part.rows_arrived for part in parts if part.rows_arrived is not None]
        fragments.append(
            replace(
                fragment,
                batches=sum(part.batches for part in parts),
                rows_in=sum(part.rows_in for part in parts),
                rows_arrived=sum(arrived) if len(arrived) == len(parts) else None,
                batch_s=sum(part.batch_s for part in parts),
                planning_s=sum(part.planning_s for part in parts),
                scheduling_s=sum(part.scheduling_s for part in parts),
                execution_s=sum(part.execution_s for part in parts),
                commit_s=sum(part.commit_s for part in parts),
            )
        )
    return replace(last, seconds=sum(seen.seconds for seen in recent), fragments=tuple(fragments))


def busy_share(fragment: FragmentObservation, seen: Observation) -> float:
    """The share of an interval that a fragment spent in batches."""
    return min(1.0, fragment.batch_s / seen.seconds)


def _is_stuck(fragment: FragmentObservation, seen: Observation) -> bool:
    return _waiting_s(fragment, seen) > WAITING_S


def _waiting_s(fragment: FragmentObservation, seen: Observation) -> float:
    """How long a fragment would need for the rows that wait, at the rate of this interval."""
    rate = fragment.rows_in / seen.seconds
    return (fragment.rows_behind or 0) / rate if rate > 0 else 1e9 * bool(fragment.rows_behind)


def _cause(fragment: FragmentObservation) -> str:
    parts = {
        "cpu": fragment.execution_s,
        "start-up": fragment.planning_s + fragment.scheduling_s,
        "delivery": fragment.commit_s,
    }
    if not fragment.rows_in:
        return "stalled"
    return max(parts, key=lambda part: parts[part])


def _costliest(fragment: FragmentObservation, seen: Observation) -> TaskObservation | None:
    """The task of a fragment that takes most CPU time; without profiles, its first."""
    tasks = {task.task: task for task in seen.tasks}
    mine = [tasks[signature] for signature in fragment.tasks if signature in tasks]
    if not mine:
        return None
    return max(mine, key=lambda task: 0.0 if task.profile is None else task.rows_in * task.profile.cpu_s_per_row)


def _none(seen: Observation) -> Bottleneck:
    if not seen.fragments:
        return Bottleneck(None, None, (), "none", "Nothing runs.")
    busiest = max(seen.fragments, key=lambda fragment: fragment.batch_s)
    task, share = _costliest(busiest, seen), busy_share(busiest, seen)
    name = task.name if task is not None else busiest.id
    sentence = f"No bottleneck: every fragment keeps up. The busiest is that of {name}, {share:.0%} of the time."
    return Bottleneck(
        None if task is None else task.task,
        name,
        () if task is None else task.dataflows,
        "none",
        sentence,
        share,
        float(busiest.rows_behind or 0),
    )
