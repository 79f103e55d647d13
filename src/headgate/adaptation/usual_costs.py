"""What rows and epochs of a fragment usually cost, from intervals in which nothing was new. Pure.

The first epoch on new workers, with another alternate or another cut takes many times as long: processes start, code is
loaded, plans are made. Whoever sized by it would buy machines because machines have come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from headgate.model.cluster.observation import FragmentObservation, Observation
from headgate.model.names import Signature

__all__ = ["UsualCost", "usual_cost"]

SETTLES = 2
"""Epochs after a change that do not count: one was under way, and one is the first of its kind."""

ENOUGH = 3
"""Intervals that are looked at, at least; where fewer are given, earlier ones help."""


class UsualCost(NamedTuple):
    """Of a fragment; none where nothing was measured."""

    row_s: float | None = None
    """Reference core-seconds of a row that enters, in the alternates of now (W)."""

    fixed_s: float | None = None
    """Seconds of the driver in each epoch (f)."""


class _Interval(NamedTuple):
    """An interval in which epochs with rows have ended."""

    batches: int
    rows: int
    fixed_s: float
    ratio: float
    """What a row took over what its tasks are known to take, in the alternates of then."""

    now_s: float
    """What its tasks are known to take in the alternates of now."""

    is_settled: bool
    is_given: bool
    """Whether it is one of those that are asked for, and not an earlier one."""


def usual_cost(fragment: str, intervals: Sequence[Observation], before: Sequence[Observation] = ()) -> UsualCost:
    """What a fragment's rows and epochs cost in settled intervals: the median by rows, and the mean by epochs.

    Rows are compared with what their tasks are known to take, so that intervals with other alternates count as well.
    Where nothing has settled it is the least that was measured: whatever starts only adds.
    """
    every = list(_measured(fragment, before, intervals))
    if not every:
        return UsualCost()
    settled = [each for each in every if each.is_settled]
    given = [each for each in settled if each.is_given]
    chosen = given if len(given) >= ENOUGH else settled[-ENOUGH:]
    now_s = every[-1].now_s
    if not chosen:
        return UsualCost(min(each.ratio for each in every) * now_s, min(each.fixed_s for each in every))
    epochs = sum(each.batches for each in chosen)
    fixed_s = sum(each.fixed_s * each.batches for each in chosen) / epochs
    return UsualCost(_median([(each.ratio, each.rows) for each in chosen]) * now_s, fixed_s)


def _measured(fragment: str, before: Sequence[Observation], intervals: Sequence[Observation]) -> Iterator[_Interval]:
    last = intervals[-1]
    costs = {(each.task, each.alternate): each.cpu_s + each.wait_s for each in last.costs}
    was: object = None
    since = SETTLES
    for place, seen in enumerate((*before, *intervals)):
        part = next((each for each in seen.fragments if each.id == fragment), None)
        if part is None:
            continue
        now = _set_up(seen, part)
        changed = was is not None and now != was
        was, since = now, 0 if changed else since
        row_s, fixed_s = part.work_s_per_row, part.fixed_s
        if row_s is not None and fixed_s is not None:
            then_s = _known_s(part, seen, seen, costs)
            now_s = _known_s(part, seen, last, costs)
            ratio, base = (row_s / then_s, now_s) if then_s > 0 and now_s > 0 else (row_s, 1.0)
            is_settled, is_given = since >= SETTLES, place >= len(before)
            yield _Interval(part.batches, part.rows_in, fixed_s, ratio, base, is_settled, is_given)
        if not changed:  # epochs of the interval in which it was changed may have ended before that
            since += part.batches


def _set_up(seen: Observation, part: FragmentObservation) -> object:
    """On what a fragment runs, and how."""
    mine = set(part.tasks)
    ways = tuple((task.task, task.alternate, task.partitions) for task in seen.tasks if task.task in mine)
    return frozenset(row.name for row in seen.machines if row.works), ways


def _known_s(
    part: FragmentObservation, seen: Observation, ways: Observation, costs: Mapping[tuple[Signature, str], float]
) -> float:
    """What the tasks of a fragment take for a row that enters: the rows of one interval, the alternates of another."""
    active, mine = {task.task: task.alternate for task in ways.tasks}, set(part.tasks)
    rows = {task.task: task.rows_in for task in seen.tasks if task.task in mine}
    return sum(count * costs.get((task, active.get(task, "")), 0.0) for task, count in rows.items()) / part.rows_in


def _median(values: Sequence[tuple[float, int]]) -> float:
    """The value that half of the rows did not exceed.

    >>> _median([(0.5, 40), (0.02, 100)])
    0.02
    """
    half = sum(rows for _, rows in values) / 2
    for value, rows in sorted(values):
        half -= rows
        if half <= 0:
            return value
    raise AssertionError("rows without a value")
