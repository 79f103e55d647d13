"""Aggregates that keep little and are nearly right: approximate distinct counts and percentiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from headgate.tasks.chains.aggregates.bags import lists, members, shaped
from headgate.tasks.chains.aggregates.base import Columns
from headgate.tasks.chains.columns import order_codes, valid_of, values_of
from headgate.tasks.chains.grouping import Groups, normalised
from headgate.tasks.chains.hashing import hash_keys
from headgate.tasks.heavy import np, pa

__all__ = ["ApproxDistinct", "ApproxPercentile"]

_RANKS = 64
"""How many ranks a register may have, so that register and rank make one number."""


@dataclass(frozen=True)
class ApproxDistinct:
    """``approx_count_distinct`` by HyperLogLog: 2^p registers, each the greatest rank of the hashes that fall to it.

    Only registers that are not empty are kept, so small groups are small. The standard error is 1.04 / sqrt(2^p); p is
    chosen as Spark does. The estimate is O. Ertl's (arXiv:1702.01284, algorithm 6), which needs no table of biases.
    """

    error: float = 0.05

    @property
    def bits(self) -> int:
        return max(4, math.ceil(2 * math.log2(1.106 / self.error)))

    @property
    def state(self) -> tuple[Any, ...]:
        return (pa.list_(pa.int32()),)

    @property
    def result(self) -> Any:
        return pa.int64()

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        del sequence
        column, ids, valid = normalised(columns[0]), groups.ids, valid_of(columns[0])
        hashes = hash_keys([column], len(column))
        if valid is not None:
            hashes, ids = hashes[valid], ids[valid]
        registers = (hashes >> np.uint64(64 - self.bits)).astype(np.int64)
        rest = (hashes << np.uint64(self.bits)) | np.uint64(1 << (self.bits - 1))
        ranks = 64 - np.frexp((rest >> np.uint64(11)).astype(np.float64))[1] - 11 + 1
        return self._kept(registers * _RANKS + ranks, ids, groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        values, ids = members(columns[0], groups.ids)
        return self._kept(values_of(values, np.int64), ids, groups)

    def _kept(self, cells: Any, ids: Any, groups: Groups) -> Columns:
        """Of each register of each group the greatest rank."""
        order = np.argsort(ids * np.int64(_RANKS << self.bits) + cells, kind="stable")
        cells, ids = cells[order], ids[order]
        last = np.ones(len(cells), bool)
        last[:-1] = (cells[1:] // _RANKS != cells[:-1] // _RANKS) | (ids[1:] != ids[:-1])
        return (lists(pa.array(cells[last].astype(np.int32)), ids[last], len(groups)),)

    def finish(self, columns: Columns) -> Any:
        values, ids = members(columns[0])
        most, groups, size = 64 - self.bits, len(columns[0]), float(1 << self.bits)
        ranks = values_of(values, np.int64) % _RANKS
        counts = np.bincount(ids * (most + 2) + ranks, minlength=groups * (most + 2)).reshape(groups, most + 2)
        empty = size - counts.sum(axis=1)
        sums = size * _tau(1 - counts[:, most + 1] / size)
        for rank in range(most, 0, -1):
            sums = 0.5 * (sums + counts[:, rank])
        sums = sums + size * _sigma(empty / size)
        with np.errstate(divide="ignore"):
            return pa.array(
                np.where(empty == size, 0, np.rint(size * size / (2 * math.log(2)) / sums)).astype(np.int64)
            )


def _sigma(x: Any) -> Any:
    """x + sum_k x^(2^k) 2^(k-1), the share of registers that are empty weighed; infinite at 1."""
    full, x, y = x >= 1, np.where(x >= 1, 0.0, x), 1.0
    total = x
    for _ in range(64):
        x = x * x
        total, y = total + x * y, y + y
    return np.where(full, np.inf, total)


def _tau(x: Any) -> Any:
    """(1 - x - sum_k (1 - x^(2^-k))^2 2^-k) / 3, for registers that are full."""
    inside = (x > 0) & (x < 1)
    x, y = np.where(inside, x, 0.5), 1.0
    total = 1 - x
    for _ in range(64):
        x = np.sqrt(x)
        y = 0.5 * y
        total = total - (1 - x) ** 2 * y
    return np.where(inside, total / 3, 0.0)


@dataclass(frozen=True)
class ApproxPercentile:
    """``approx_percentile``: values with weights; above 2 x accuracy, accuracy of them at equal distances of rank.

    It is exact up to 2 x accuracy values of a group, and each thinning is off by at most 1 / accuracy of the ranks.
    """

    kind: Any
    shares: tuple[float, ...]
    listed: bool
    accuracy: int = 10_000

    @property
    def state(self) -> tuple[Any, ...]:
        return (pa.list_(self.kind), pa.list_(pa.int64()))

    @property
    def result(self) -> Any:
        return pa.list_(self.kind) if self.listed else self.kind

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        del sequence
        values, ids, valid = columns[0], groups.ids, valid_of(columns[0])
        if valid is not None:
            values, ids = values.filter(pa.array(valid)), ids[valid]
        return self._kept(values, np.ones(len(values), np.int64), ids, groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        values, ids = members(columns[0], groups.ids)
        return self._kept(values, values_of(columns[1].flatten(), np.int64), ids, groups)

    def _kept(self, values: Any, weights: Any, ids: Any, groups: Groups) -> Columns:
        sizes = np.bincount(ids, minlength=len(groups))
        if len(sizes) and sizes.max() > 2 * self.accuracy:
            order = np.lexsort((order_codes(values), ids))
            values, weights = values.take(pa.array(order)), weights[order]
            starts = np.cumsum(sizes) - sizes
            kept, new = [], []
            for group, size in enumerate(sizes):
                places = np.arange(starts[group], starts[group] + size)
                of = weights[places]
                if size > 2 * self.accuracy:
                    ranks = np.cumsum(of)
                    wanted = np.linspace(0, ranks[-1], self.accuracy + 1)[1:]
                    chosen = np.unique(np.searchsorted(ranks, np.ceil(wanted)))
                    places, of = places[chosen], np.diff(ranks[chosen], prepend=0)
                kept.append(places)
                new.append(of)
            places, weights = np.concatenate(kept), np.concatenate(new)
            values, ids = values.take(pa.array(places)), ids[places]
        return lists(values, ids, len(groups)), lists(pa.array(weights), ids, len(groups))

    def finish(self, columns: Columns) -> Any:
        values, ids = members(columns[0])
        weights = values_of(columns[1].flatten(), np.int64)
        order = np.lexsort((order_codes(values), ids))
        ranks = np.cumsum(weights[order])
        sizes = np.diff(columns[0].offsets.to_numpy(zero_copy_only=False))
        ends, filled = np.cumsum(sizes), sizes > 0
        totals = np.concatenate([[0], ranks])
        before, all_of = totals[ends - sizes], totals[ends] - totals[ends - sizes]
        places = np.zeros((len(sizes), len(self.shares)), np.int64)
        for place, share in enumerate(self.shares):
            wanted = before + np.maximum(np.ceil(share * all_of), 1)
            at = np.searchsorted(ranks, wanted)
            places[filled, place] = order[at[filled]]
        taken = values.take(pa.array(places.reshape(-1))) if len(values) else pa.nulls(places.size, self.kind)
        return shaped(taken, filled, len(self.shares), self.listed)
