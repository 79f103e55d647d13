"""Session windows: pieces of sessions are appended, and merged with those that they overlap when a session may close.

A piece is alive until its own end. If its session goes on beyond that, because another piece overlaps it, the pieces
that end are appended again, as one with the session's end; so what is dead can always be dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.model.chain_work import HASH, UNTIL, Folded, Moment, StateReader
from headgate.tasks.chains.aggregation import numbered
from headgate.tasks.chains.columns import one_chunk
from headgate.tasks.chains.grouping import Groups, grouped, rows_where
from headgate.tasks.chains.rows import NO_MARK, hashes_of, key_columns, live, table_of, times_of
from headgate.tasks.chains.windows import START, WindowFold, after_mark
from headgate.tasks.heavy import np, pa

__all__ = ["SESSIONS", "SessionFold"]

SESSIONS = "sessions"


@dataclass(frozen=True)
class SessionFold:
    """Sessions that end where no row came for a gap; types and aggregates are those of ``windows``."""

    gap: int
    windows: WindowFold

    def fold(self, moment: Moment, sides: Sequence[Any], state: StateReader) -> Folded:
        """Fold an epoch."""
        rows = sides[0]
        times, valid = times_of(rows)
        in_time = times + self.gap > (NO_MARK if moment.before is None else moment.before)
        known = np.ones(len(times), bool) if valid is None else valid
        new = self._begun(moment, rows_where(rows, known & in_time))
        output = self.windows.output.empty_table()
        if moment.after is not None and moment.after != moment.before:
            output, new = self._closed(moment, new, state)
        late = (np.flatnonzero(known & ~in_time),)
        return Folded(output, {SESSIONS: new} if new.num_rows else {}, late, after_mark(moment), new.num_rows)

    def merge(self, table: str, rows: Any) -> Any:
        """One row for pieces of a key that end at the same moment, and so overlap.

        Pieces that overlap and end at others stay apart: an epoch meanwhile may append one that ends again.
        """
        del table
        if not rows.num_rows:
            return rows
        ends = rows[UNTIL].to_numpy()
        of_one = grouped(hashes_of(rows), key_columns(rows, self.windows.keys), ends)
        groups = _in_time(of_one, rows[START].to_numpy())
        return self._joined(rows, groups, ends[groups.firsts])

    def _begun(self, moment: Moment, rows: Any) -> Any:
        if not rows.num_rows:
            return self.windows.state.empty_table()
        hashes, keys, times = hashes_of(rows), key_columns(rows, self.windows.keys), times_of(rows)[0]
        groups = _overlapping(grouped(hashes, keys), times, times + self.gap)
        firsts = pa.array(groups.firsts)
        start, end = times[groups.firsts], times[groups.lasts] + self.gap
        partial = self.windows.aggregation.begin(rows, numbered(moment.epoch, rows.num_rows), groups)
        columns = [hashes[groups.firsts], end, start, *(key.take(firsts) for key in keys), *partial]
        return table_of(self.windows.state, columns)

    def _sessions(self, rows: Any) -> Groups:
        starts, ends = rows[START].to_numpy(), rows[UNTIL].to_numpy()
        return _overlapping(grouped(hashes_of(rows), key_columns(rows, self.windows.keys)), starts, ends)

    def _joined(self, rows: Any, groups: Groups, ends: Any) -> Any:
        """A row of state for each group, with these ends."""
        firsts = pa.array(groups.firsts)
        keys = [one_chunk(rows[name]).take(firsts) for name in self.windows.keys]
        heads = [hashes_of(rows)[groups.firsts], ends, rows[START].to_numpy()[groups.firsts], *keys]
        return table_of(self.windows.state, [*heads, *self.windows.aggregation.merge(rows, groups)])

    def _closed(self, moment: Moment, new: Any, state: StateReader) -> tuple[Any, Any]:
        """The results of sessions that close, and the rows to append."""
        assert moment.after is not None
        ending = live(state.rows(SESSIONS, moment.before, moment.after), moment.before)
        due = [_hashes_until(table, moment.after) for table in (ending, new)]
        hashes = np.unique(np.concatenate(due))
        if not len(hashes):
            return self.windows.output.empty_table(), new
        old = live(state.rows_of(SESSIONS, hashes), moment.before).select(self.windows.state.names)
        touched = np.isin(hashes_of(new), hashes)
        rows = pa.concat_tables([old, new.filter(pa.array(touched))]).combine_chunks()
        is_new = np.arange(rows.num_rows) >= old.num_rows
        groups = self._sessions(rows)
        ends = np.maximum.reduceat(rows[UNTIL].to_numpy()[groups.order], groups.starts)
        output = self._results(rows, groups, ends, ends <= moment.after)
        going_on, piece_ends = np.empty(rows.num_rows, bool), rows[UNTIL].to_numpy()
        going_on[groups.order] = np.repeat(ends > moment.after, groups.lengths)
        session_end = np.empty(rows.num_rows, np.int64)
        session_end[groups.order] = np.repeat(ends, groups.lengths)
        prolonged = going_on & (piece_ends <= moment.after)
        kept = [new.filter(pa.array(~touched)), rows.filter(pa.array(is_new & (piece_ends > moment.after)))]
        if prolonged.any():
            pieces = rows.filter(pa.array(prolonged)).combine_chunks()
            of_one = grouped(hashes_of(pieces), key_columns(pieces, self.windows.keys), session_end[prolonged])
            by_time = _in_time(of_one, pieces[START].to_numpy())
            kept.append(self._joined(pieces, by_time, session_end[prolonged][by_time.firsts]))
        return output, _by_hash(pa.concat_tables(kept).combine_chunks())

    def _results(self, rows: Any, groups: Groups, ends: Any, closed: Any) -> Any:
        if not closed.any():
            return self.windows.output.empty_table()
        order = groups.order[np.repeat(closed, groups.lengths)]
        lengths = groups.lengths[closed]
        chosen = Groups(order, np.cumsum(lengths) - lengths)
        return self.windows.results(rows, chosen, rows[START].to_numpy()[chosen.firsts], ends[closed])


def _hashes_until(table: Any, mark: int) -> Any:
    return hashes_of(table)[table[UNTIL].to_numpy() <= mark]


def _by_hash(table: Any) -> Any:
    return table.take(pa.array(np.argsort(table[HASH].to_numpy(), kind="stable")))


def _in_time(groups: Groups, times: Any) -> Groups:
    """The same groups, each in order of time."""
    inner = np.lexsort((times[groups.order], groups.ids))
    return Groups(groups.order[inner], groups.starts)


def _overlapping(groups: Groups, starts: Any, ends: Any) -> Groups:
    """Groups divided where a piece begins after all before it have ended; each in order of time."""
    timed = _in_time(groups, starts)
    order, ids = timed.order, timed.ids
    # The latest end so far within each group: ranks of ends, lifted above those of the groups before.
    values, ranks = np.unique(ends[order], return_inverse=True)
    reached = np.maximum.accumulate(ranks + ids * np.int64(len(values))) - ids * np.int64(len(values))
    begins = np.ones(len(order), bool)
    begins[1:] = (ids[1:] != ids[:-1]) | (starts[order][1:] > values[reached[:-1].clip(0)])
    return Groups(order, np.flatnonzero(begins))
