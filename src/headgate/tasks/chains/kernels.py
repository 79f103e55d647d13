"""The kernels of keyed tasks: counts, running aggregates, averages, differences, Kalman filters, first and highest."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

from headgate.tasks.chains.aggregates.bags import members
from headgate.tasks.chains.aggregates.base import Columns
from headgate.tasks.chains.columns import as_array, valid_of, values_of
from headgate.tasks.chains.grouping import Groups
from headgate.tasks.chains.keyed import KeyedStep
from headgate.tasks.chains.scans import running, stepped
from headgate.tasks.heavy import np, pa

__all__ = [
    "CountKernel",
    "DifferenceKernel",
    "FirstKernel",
    "KalmanKernel",
    "MovingAverageKernel",
    "RunningKernel",
    "TopKernel",
]


class _Valued:
    """The rows that have a value, and the groups of these."""

    def __init__(self, values: Any, groups: Groups) -> None:
        valid = valid_of(values)
        self.places = np.arange(len(values)) if valid is None else np.flatnonzero(valid)
        self.numbers = values_of(values, np.float64)[self.places]
        ids = groups.ids[self.places]
        starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])) if len(ids) else np.zeros(0, np.int64)
        self.groups = Groups(np.arange(len(ids)), starts)
        self.of = ids[starts]
        """The number of the whole group of each group."""

    def spread(self, results: Any, rows: int) -> Any:
        """Results of rows with values as a column of all rows, null for the others."""
        column, valid = np.zeros(rows, results.dtype), np.zeros(rows, bool)
        column[self.places], valid[self.places] = results, True
        return as_array(column, valid, pa.from_numpy_dtype(results.dtype))


@dataclass(frozen=True)
class CountKernel:
    """How many rows there were."""

    @property
    def state(self) -> list[Any]:
        return [pa.int64()]

    def step(self, old: Columns, values: Any, groups: Groups) -> KeyedStep:
        before = values_of(old[0], np.int64)
        place = np.arange(len(values)) - np.repeat(groups.starts, groups.lengths)
        counts = np.repeat(before, groups.lengths) + place + 1
        return KeyedStep([pa.array(before + groups.lengths)], [pa.array(counts)])


@dataclass(frozen=True)
class RunningKernel:
    """Number, sum, mean, least and greatest of the values so far. A null has the results of the row before it."""

    wanted: tuple[str, ...]

    @property
    def state(self) -> list[Any]:
        return [pa.int64(), pa.float64(), pa.float64(), pa.float64()]

    def step(self, old: Columns, values: Any, groups: Groups) -> KeyedStep:
        valued = _Valued(values, groups)
        own, starts = valued.groups, valued.groups.starts
        known = values_of(old[0], np.int64)[valued.of] > 0
        before = [values_of(column, np.float64) for column in old]
        counts = np.repeat(before[0][valued.of], own.lengths) + np.arange(len(own.order)) + 1
        counts -= np.repeat(starts, own.lengths)
        columns = [counts]
        for part, function in ((1, np.add), (2, np.fmin), (3, np.fmax)):
            first = valued.numbers.copy()
            first[starts] = np.where(known, function(before[part][valued.of], first[starts]), first[starts])
            columns.append(running(function, first, own))
        ends = starts + own.lengths - 1
        new = []
        for state, column in zip(before, columns, strict=True):
            state = state.copy()
            state[valued.of] = column[ends]
            new.append(state)
        results = self._results(valued, columns, before, groups)
        some = new[0] > 0
        kept = [pa.array(new[0].astype(np.int64)), *(as_array(column, some, pa.float64()) for column in new[1:])]
        return KeyedStep(kept, results)

    def _results(self, valued: _Valued, columns: list[Any], before: list[Any], groups: Groups) -> list[Any]:
        rows = len(groups.order)
        last = np.full(rows, -1)
        last[valued.places] = np.arange(len(valued.places))
        last = np.maximum.accumulate(last) if rows else last
        here = np.zeros(rows, bool)
        here[last >= 0] = valued.places[last[last >= 0]] >= np.repeat(groups.starts, groups.lengths)[last >= 0]
        now = [np.repeat(state, groups.lengths) for state in before]
        for part, column in enumerate(columns):
            now[part][here] = column[last[here]]
        count, total, least, most = now
        by_name = {"sum": total, "mean": total / np.maximum(count, 1), "min": least, "max": most}
        return [
            pa.array(count.astype(np.int64)) if name == "count" else as_array(by_name[name], count > 0, pa.float64())
            for name in self.wanted
        ]


@dataclass(frozen=True)
class KalmanKernel:
    """A one-dimensional Kalman filter, which starts at an estimate of 0."""

    process: float
    sensor: float
    first_error: float

    @property
    def state(self) -> list[Any]:
        return [pa.float64(), pa.float64()]

    def step(self, old: Columns, values: Any, groups: Groups) -> KeyedStep:
        process, sensor = self.process, self.sensor

        def filtered(state: Any, value: Any) -> tuple[Any, Any]:
            estimate, error = state
            error = error + process
            gain = error / (error + sensor)
            estimate = estimate + gain * (value - estimate)
            return (estimate, (1.0 - gain) * error), estimate

        valued = _Valued(values, groups)
        known = old[1].is_valid().to_numpy(zero_copy_only=False)
        estimate = values_of(old[0], np.float64).copy()
        error = np.where(known, values_of(old[1], np.float64), self.first_error)
        own = [estimate[valued.of], error[valued.of]]
        results = stepped(filtered, own, valued.numbers, valued.groups)
        estimate[valued.of], error[valued.of] = own
        known[valued.of] = True
        state = [as_array(estimate, known, pa.float64()), as_array(error, known, pa.float64())]
        return KeyedStep(state, [valued.spread(results, len(values))])


class _Recent:
    """The values kept of each key with its new ones behind them, key by key."""

    def __init__(self, old: Any, valued: _Valued, count: int) -> None:
        kept, ids = members(old)
        new_ids = np.repeat(valued.of, valued.groups.lengths)
        all_ids = np.concatenate([ids, new_ids])
        order = np.argsort(all_ids, kind="stable")
        self.numbers = np.concatenate([values_of(kept, np.float64), valued.numbers])[order]
        self.ids = all_ids[order]
        sizes = np.bincount(self.ids, minlength=count)
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - sizes
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        self.new = place[len(ids) :]
        """Where the new values are."""

    def last(self, size: int) -> Any:
        """The last values of each key, as lists."""
        mask = np.arange(len(self.ids)) >= self.ends[self.ids] - size
        counts = np.bincount(self.ids[mask], minlength=len(self.ends))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(self.numbers[mask]))


def _lists(column: Any) -> Any:
    return column.cast(pa.list_(pa.float64()))


@dataclass(frozen=True)
class MovingAverageKernel:
    """The mean of the last values."""

    size: int

    @property
    def state(self) -> list[Any]:
        return [pa.list_(pa.float64())]

    def step(self, old: Columns, values: Any, groups: Groups) -> KeyedStep:
        valued = _Valued(values, groups)
        recent = _Recent(_lists(old[0]), valued, len(groups))
        end = recent.new + 1
        begin = np.maximum(end - self.size, recent.starts[recent.ids[recent.new]])
        padded = np.concatenate([recent.numbers, [0.0]])
        sums = np.add.reduceat(padded, np.stack([begin, end], 1).reshape(-1))[::2] if len(end) else np.zeros(0)
        return KeyedStep([recent.last(self.size)], [valued.spread(sums / (end - begin), len(values))])


@dataclass(frozen=True)
class DifferenceKernel:
    """Each value less the one that came ``lag`` values before it."""

    lag: int

    @property
    def state(self) -> list[Any]:
        return [pa.list_(pa.float64())]

    def step(self, old: Columns, values: Any, groups: Groups) -> KeyedStep:
        valued = _Valued(values, groups)
        recent = _Recent(_lists(old[0]), valued, len(groups))
        before = recent.new - self.lag
        enough = before >= recent.starts[recent.ids[recent.new]]
        differences = recent.numbers[recent.new] - recent.numbers[np.where(enough, before, 0)]
        column, valid = np.zeros(len(values)), np.zeros(len(values), bool)
        column[valued.places], valid[valued.places] = differences, enough
        return KeyedStep([recent.last(self.lag)], [as_array(column, valid, pa.float64())])


@dataclass(frozen=True)
class FirstKernel:
    """The first row of each key passes."""

    @property
    def state(self) -> list[Any]:
        return [pa.bool_()]

    def step(self, old: Columns, values: Any, groups: Groups) -> KeyedStep:
        new = ~old[0].is_valid().to_numpy(zero_copy_only=False)
        passes = np.zeros(len(values), bool)
        passes[groups.starts[new]] = True
        return KeyedStep([pa.array(np.ones(len(groups), bool))], passes=passes, changed=new)


@dataclass(frozen=True)
class TopKernel:
    """Rows among the highest of their key so far, with their rank. Of equal values the first counts.

    Values that are no higher than what a full list ends with are left out for all keys at once; they are most. The
    others are put in one by one.
    """

    size: int

    @property
    def state(self) -> list[Any]:
        return [pa.list_(pa.float64())]

    def step(self, old: Columns, values: Any, groups: Groups) -> KeyedStep:
        lists = _lists(old[0])
        kept = lists.to_pylist()
        least = np.array([one[0] if one is not None and len(one) == self.size else -np.inf for one in kept])
        full = np.array([one is not None and len(one) == self.size for one in kept], bool)
        valued = _Valued(values, groups)
        ids = np.repeat(valued.of, valued.groups.lengths)
        hopeful = np.flatnonzero(~full[ids] | (valued.numbers > least[ids]))
        ranks, passes, changed = np.zeros(len(values), np.int64), np.zeros(len(values), bool), np.zeros(len(kept), bool)
        for at, group, value in zip(
            valued.places[hopeful].tolist(), ids[hopeful].tolist(), valued.numbers[hopeful].tolist(), strict=True
        ):
            highest = kept[group] if kept[group] is not None else []
            kept[group] = highest
            if len(highest) == self.size and not value > highest[0]:
                continue
            place = bisect.bisect_left(highest, value)
            ranks[at], passes[at], changed[group] = len(highest) - place + 1, True, True
            highest.insert(place, value)
            del highest[: -self.size]
        return KeyedStep([pa.array(kept, pa.list_(pa.float64()))], [pa.array(ranks)], passes, changed)
