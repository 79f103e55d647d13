"""Aggregates that keep values: lists, sets, distinct counts, percentiles. What a group may keep is bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.tasks.chains.aggregates.base import Aggregate, Columns
from headgate.tasks.chains.columns import order_codes, valid_of, values_of
from headgate.tasks.chains.grouping import Groups, codes_of
from headgate.tasks.heavy import np, pa

__all__ = ["MAX_VALUES", "Collected", "MostFrequent", "OfDistinct", "Percentile", "lists", "members"]

MAX_VALUES = 100_000
"""So many values may be kept for one group."""


def lists(values: Any, ids: Any, count: int) -> Any:
    """A list for each group of values that are sorted by group."""
    sizes = np.bincount(ids, minlength=count)
    if len(sizes) and sizes.max() > MAX_VALUES:
        remedy = "use approx_count_distinct or approx_percentile, a shorter window or a finer key"
        raise ValueError(
            f"an aggregate keeps {sizes.max():,} values of one group, at most are {MAX_VALUES:,}; {remedy}"
        )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def members(column: Any, ids: Any = None) -> tuple[Any, Any]:
    """The values of lists side by side, and for each the number of its list (or what ``ids`` has in its place)."""
    offsets = column.offsets.to_numpy(zero_copy_only=False)
    numbers = np.arange(len(column)) if ids is None else ids
    return column.flatten(), np.repeat(numbers, np.diff(offsets))


def _each_once(values: Any, ids: Any) -> tuple[Any, Any]:
    """The values of each group without repetitions, in order of arrival."""
    codes = codes_of([values], len(values))
    order = np.lexsort((codes, ids))
    first = np.ones(len(order), bool)
    first[1:] = (codes[order][1:] != codes[order][:-1]) | (ids[order][1:] != ids[order][:-1])
    kept = np.sort(order[first])
    return values.take(pa.array(kept)), ids[kept]


@dataclass(frozen=True)
class Collected:
    """``collect_list`` in order of arrival and ``collect_set``; nulls are left out."""

    kind: Any
    distinct: bool

    @property
    def state(self) -> tuple[Any, ...]:
        return (pa.list_(self.kind),)

    @property
    def result(self) -> Any:
        return pa.list_(self.kind)

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        del sequence
        values, ids, valid = columns[0], groups.ids, valid_of(columns[0])
        if valid is not None:
            values, ids = values.filter(pa.array(valid)), ids[valid]
        return self._kept(values, ids, groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        return self._kept(*members(columns[0], groups.ids), groups)

    def _kept(self, values: Any, ids: Any, groups: Groups) -> Columns:
        if self.distinct:
            values, ids = _each_once(values, ids)
        return (lists(values, ids, len(groups)),)

    def finish(self, columns: Columns) -> Any:
        return columns[0]


@dataclass(frozen=True)
class _Kept:
    """What aggregates over kept values share: they keep as ``bag`` does."""

    bag: Collected

    @property
    def state(self) -> tuple[Any, ...]:
        return self.bag.state

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        return self.bag.begin(columns, sequence, groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        return self.bag.merge(columns, groups)


@dataclass(frozen=True)
class OfDistinct(_Kept):
    """An aggregate of each value once, such as ``count(distinct x)``."""

    inner: Aggregate
    empty: Any
    """The result for no values."""

    @property
    def result(self) -> Any:
        return self.inner.result

    def finish(self, columns: Columns) -> Any:
        values, ids = members(columns[0])
        filled = np.unique(ids)
        starts = np.searchsorted(ids, filled)
        if not len(filled):
            return pa.array([self.empty] * len(columns[0]), self.result)
        groups = Groups(np.arange(len(ids)), starts)
        results = self.inner.finish(self.inner.begin((values,), np.arange(len(ids)), groups))
        places = np.zeros(len(columns[0]), np.int64)
        places[filled] = np.arange(len(filled))
        missing = np.bincount(filled, minlength=len(places)) == 0
        spread = results.take(pa.array(places, mask=missing))
        return spread if self.empty is None else spread.fill_null(self.empty)


@dataclass(frozen=True)
class Percentile(_Kept):
    """``percentile``, exact, between two values in proportion; one of several are a list."""

    shares: tuple[float, ...]
    listed: bool

    @property
    def result(self) -> Any:
        return pa.list_(pa.float64()) if self.listed else pa.float64()

    def finish(self, columns: Columns) -> Any:
        values, ids = members(columns[0])
        numbers = values_of(values.cast(pa.float64(), safe=False), np.float64)
        order = np.lexsort((numbers, ids))
        numbers = numbers[order]
        sizes = np.diff(columns[0].offsets.to_numpy(zero_copy_only=False))
        starts = np.cumsum(sizes) - sizes
        results = np.zeros((len(sizes), len(self.shares)))
        for place, share in enumerate(self.shares):
            at = share * (sizes - 1)
            low, high = np.floor(at), np.ceil(at)
            filled = sizes > 0
            below, above = (numbers[(starts + edge).astype(np.int64)[filled]] for edge in (low, high))
            between = (high - at)[filled] * below + (at - low)[filled] * above
            results[filled, place] = np.where((low == high)[filled] | (below == above), below, between)
        return shaped(pa.array(results.reshape(-1)), sizes > 0, len(self.shares), self.listed)


def shaped(values: Any, known: Any, each: int, listed: bool) -> Any:
    """Results, ``each`` of them for one group: the value or a list of them, null where not known."""
    if not listed:
        return values.take(pa.array(np.arange(len(known)), mask=~known))
    offsets = pa.array(np.arange(len(known) + 1, dtype=np.int32) * each)
    made = pa.ListArray.from_arrays(offsets, values)
    return made.take(pa.array(np.arange(len(known)), mask=~known))


@dataclass(frozen=True)
class MostFrequent(_Kept):
    """``mode``: the most frequent value, of several the one that came first."""

    @property
    def result(self) -> Any:
        return self.bag.kind

    def finish(self, columns: Columns) -> Any:
        values, ids = members(columns[0])
        codes = order_codes(values)
        order = np.lexsort((codes, ids))
        ends = np.ones(len(order) + 1, bool)
        ends[1:-1] = (codes[order][1:] != codes[order][:-1]) | (ids[order][1:] != ids[order][:-1])
        edges = np.flatnonzero(ends)
        firsts, counts = order[edges[:-1]], np.diff(edges)
        best = np.lexsort((firsts, -counts, ids[firsts]))
        of = ids[firsts][best]
        top = np.concatenate([[True], of[1:] != of[:-1]]) if len(of) else np.zeros(0, bool)
        places, known = np.zeros(len(columns[0]), np.int64), np.zeros(len(columns[0]), bool)
        places[of[top]], known[of[top]] = firsts[best][top], True
        return values.take(pa.array(places, mask=~known))
