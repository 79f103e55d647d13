"""Joins of two streams within a span of event time: both sides are appended, and cut by the watermark.

The result is that of a batch join of all rows that were in time. A row pairs with those of the other side that came
before it or with it. A row without a partner is passed on when the watermark says that none can come any more; whether
it has had one is computed then, from the other side's rows, which are kept long enough for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.model.chain_work import UNTIL, Folded, Moment, StateReader
from headgate.tasks.chains.columns import one_chunk
from headgate.tasks.chains.grouping import differ, rows_where
from headgate.tasks.chains.rows import NO_MARK, hashes_of, key_columns, live, table_of, times_of
from headgate.tasks.chains.windows import after_mark
from headgate.tasks.heavy import np, pa, pc

__all__ = ["SIDES", "JoinFold"]

SIDES = ("left", "right")
_NONE = -1


@dataclass(frozen=True)
class JoinFold:
    """A join for given types: partners are rows with equal keys and ``low <= right time - left time <= high``."""

    keys: tuple[tuple[str, ...], tuple[str, ...]]
    kinds: tuple[Any, ...]
    """The types in which keys are compared."""

    low: int
    high: int
    outer: tuple[bool, bool]
    """Whether rows of the left, of the right side are passed on without a partner."""

    states: tuple[Any, Any]
    """The schemas of the sides' state: hash, until, and the rows' columns."""

    output: Any
    columns: tuple[tuple[tuple[int, str], ...], ...]
    """For each column of the output the side and the column that it is; of a key those of both sides."""

    def fold(self, moment: Moment, sides: Sequence[Any], state: StateReader) -> Folded:
        """Fold an epoch."""
        new, late, pieces = [], [], []
        for side in (0, 1):
            rows, too_late = self._accepted(moment, sides[side])
            late.append(too_late)
            mated = self._may_mate(side, rows)
            if self.outer[side] and not mated.all():
                pieces.append(self._unpaired(side, rows.filter(pa.array(~mated))))
            new.append(self._stored(side, rows_where(rows, mated)))
        old_left, old_right = (self._old(moment, side, new[1 - side], state) for side in (0, 1))
        pieces.append(self._paired(new[0], pa.concat_tables([old_right, new[1]])))
        pieces.append(self._paired(old_left, new[1]))
        if moment.after is not None and moment.after != moment.before:
            pieces += [self._lonely(moment, side, new, state) for side in (0, 1) if self.outer[side]]
            new = [live(rows, moment.after) for rows in new]
        appended = {
            name: rows.take(pa.array(np.argsort(hashes_of(rows), kind="stable")))
            for name, rows in zip(SIDES, new, strict=True)
            if rows.num_rows
        }
        count = sum(rows.num_rows for rows in new)
        return Folded(pa.concat_tables(pieces).combine_chunks(), appended, tuple(late), after_mark(moment), count)

    def merge(self, table: str, rows: Any) -> Any:
        """The same rows, sorted."""
        del table
        return rows.take(pa.array(np.argsort(hashes_of(rows), kind="stable"))).combine_chunks()

    def _accepted(self, moment: Moment, rows: Any) -> tuple[Any, Any]:
        times, valid = times_of(rows)
        in_time = times > (NO_MARK if moment.before is None else moment.before)
        if valid is not None:
            in_time |= ~valid
        return rows_where(rows, in_time), np.flatnonzero(~in_time)

    def _may_mate(self, side: int, rows: Any) -> Any:
        """Rows that may have a partner: a key and a time."""
        valid = times_of(rows)[1]
        mask = np.ones(rows.num_rows, bool) if valid is None else valid.copy()
        for name in self.keys[side]:
            if (column := one_chunk(rows[name])).null_count:
                mask &= column.is_valid().to_numpy(zero_copy_only=False)
        return mask

    def _reach(self, side: int) -> int:
        """How long after its time a row of a side may get partners."""
        return max(self.high if side == 0 else -self.low, 0)

    def _kept_longer(self, side: int) -> int:
        """How much longer it is kept, for rows of the other side that are to be passed on without a partner."""
        return self._reach(1 - side) if self.outer[1 - side] else 0

    def _stored(self, side: int, rows: Any) -> Any:
        until = times_of(rows)[0] + self._reach(side) + self._kept_longer(side)
        names = self.states[side].names[2:]
        return table_of(self.states[side], [hashes_of(rows), until, *(one_chunk(rows[name]) for name in names)])

    def _old(self, moment: Moment, side: int, partners: Any, state: StateReader) -> Any:
        """The rows of state of a side that have a hash of these partners."""
        if not partners.num_rows:
            return self.states[side].empty_table()
        rows = state.rows_of(SIDES[side], np.unique(hashes_of(partners)))
        return live(rows, moment.before).select(self.states[side].names)

    def _paired(self, left: Any, right: Any) -> Any:
        one, other = self._pairs(left, right)
        return self._output((left, right), (one, other))

    def _lonely(self, moment: Moment, side: int, new: Sequence[Any], state: StateReader) -> Any:
        """The rows of a side that can get no partner any more, and had none."""
        assert moment.after is not None
        extra = self._kept_longer(side)
        before = None if moment.before is None else moment.before + extra
        old = state.rows(SIDES[side], before, moment.after + extra).select(self.states[side].names)
        rows = pa.concat_tables([old, new[side]]).combine_chunks()
        due = rows[UNTIL].to_numpy() - extra
        mask = due <= moment.after
        if moment.before is not None:
            mask &= due > moment.before
        rows = rows_where(rows, mask)
        others = pa.concat_tables([self._old(moment, 1 - side, rows, state), new[1 - side]])
        pairs = self._pairs(rows, others) if side == 0 else self._pairs(others, rows)
        alone = np.ones(rows.num_rows, bool)
        alone[pairs[side]] = False
        return self._unpaired(side, rows.filter(pa.array(alone)))

    def _unpaired(self, side: int, rows: Any) -> Any:
        own, none = np.arange(rows.num_rows), np.full(rows.num_rows, _NONE)
        empty = self.states[1 - side].empty_table()
        return self._output((rows, empty), (own, none)) if side == 0 else self._output((empty, rows), (none, own))

    def _output(self, tables: tuple[Any, Any], places: tuple[Any, Any]) -> Any:
        """The rows at these places, side by side; nulls where there is no row."""
        takes = [pa.array(at, mask=at == _NONE) if (at == _NONE).any() else pa.array(at) for at in places]
        made = []
        for sources, field in zip(self.columns, self.output, strict=True):
            taken = [one_chunk(tables[side][name]).take(takes[side]) for side, name in sources]
            made.append(
                taken[0].cast(field.type) if len(taken) == 1 else pc.coalesce(*(t.cast(field.type) for t in taken))
            )
        return pa.Table.from_arrays(made, schema=self.output)

    def _pairs(self, left: Any, right: Any) -> tuple[Any, Any]:
        """The places of partners: right rows sorted by hash and time are looked up by the left ones."""
        if not left.num_rows or not right.num_rows:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        hashes, times = hashes_of(right), times_of(right)[0]
        order = np.lexsort((times, hashes))
        hash_values, hash_codes = np.unique(hashes[order], return_inverse=True)
        time_values, time_codes = np.unique(times[order], return_inverse=True)
        width = np.int64(len(time_values) + 1)
        address = hash_codes * width + time_codes
        wanted, at = hashes_of(left), times_of(left)[0]
        code = np.searchsorted(hash_values, wanted).clip(max=len(hash_values) - 1)
        present = hash_values[code] == wanted
        begin = np.searchsorted(address, code * width + np.searchsorted(time_values, at + self.low, "left"), "left")
        end = np.searchsorted(address, code * width + np.searchsorted(time_values, at + self.high, "right"), "left")
        counts = np.where(present, end - begin, 0).clip(0)
        one = np.repeat(np.arange(len(wanted)), counts)
        steps = np.arange(len(one)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._of_equal_keys(left, right, one, order[np.repeat(begin, counts) + steps])

    def _of_equal_keys(self, left: Any, right: Any, one: Any, other: Any) -> tuple[Any, Any]:
        """The pairs whose keys are equal, and not only their hashes."""
        same = np.ones(len(one), bool)
        sides = (key_columns(left, self.keys[0]), key_columns(right, self.keys[1]))
        for mine, theirs, kind in zip(*sides, self.kinds, strict=True):
            same &= ~differ(mine.cast(kind).take(pa.array(one)), theirs.cast(kind).take(pa.array(other)))
        return (one, other) if same.all() else (one[same], other[same])
