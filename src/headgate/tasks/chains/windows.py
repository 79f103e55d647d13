"""Tumbling and sliding windows: partial aggregates by pane and key are appended, and merged when a window closes.

A window closes in the one epoch whose step of the watermark, (before, after], has its end: never twice, never none,
whatever the state still holds. A row is late if all windows that it belongs to have closed before the epoch. Where
closed windows are updated for some time (``updated_for``), it is late if that is over, too; otherwise the windows that
it changes are passed on once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.model.chain_work import HASH, UNTIL, Axis, Folded, Moment, StateReader
from headgate.tasks.chains.aggregation import Aggregation, numbered
from headgate.tasks.chains.grouping import Groups, grouped, rows_where
from headgate.tasks.chains.panes import Panes
from headgate.tasks.chains.rows import NO_MARK, hashes_of, key_columns, live, table_of, times_of
from headgate.tasks.heavy import np, pa

__all__ = ["PANES", "START", "WindowFold", "after_mark"]

PANES, START = "panes", "__start"


def after_mark(moment: Moment) -> dict[Axis, int]:
    """What is dead after an epoch."""
    return {} if moment.after is None else {Axis.EVENT: moment.after}


@dataclass(frozen=True)
class WindowFold:
    """Windows of fixed size, for given types."""

    panes: Panes
    keys: tuple[str, ...]
    aggregation: Aggregation
    state: Any
    """The schema of the panes: hash, until, start, keys, state of the aggregates."""

    output: Any
    """The schema of the results: start, end, keys, results."""

    picked: tuple[int, ...]
    """For each result the call that it comes from."""

    updated_for: int = 0
    """How long after its end a window that has closed takes rows, in microseconds of the watermark."""

    def fold(self, moment: Moment, sides: Sequence[Any], state: StateReader) -> Folded:
        """Fold an epoch."""
        rows, late = self._accepted(moment, sides[0])
        new = self._begun(moment, rows)
        output = self._updated(moment, new, state)
        if moment.after is not None and self._closes(moment.before, moment.after):
            since = None if moment.before is None else moment.before + self.updated_for
            reach = moment.after + self.panes.overlap + self.updated_for
            old = live(state.rows(PANES, since, reach), since)
            closed = self._closed(moment, pa.concat_tables([old.select(self.state.names), new]))
            output = pa.concat_tables([output, closed])
        new = live(new, moment.after)
        appended = {PANES: new} if new.num_rows else {}
        return Folded(output, appended, (late,), after_mark(moment), new.num_rows)

    def _closes(self, before: int | None, after: int) -> bool:
        """Whether any window ends in (before, after]; in most epochs none does, and then no state is read."""
        return before is None or self.panes.last_end(before) < self.panes.last_end(after)

    def merge(self, table: str, rows: Any) -> Any:
        """One row for each pane and key."""
        del table
        if not rows.num_rows:
            return rows
        starts = rows[START].to_numpy()
        groups = grouped(hashes_of(rows), key_columns(rows, self.keys), starts)
        heads = rows.select([HASH, UNTIL, START, *self.keys]).take(pa.array(groups.firsts)).combine_chunks()
        columns = [heads[name].combine_chunks() for name in heads.column_names]
        return table_of(self.state, [*columns, *self.aggregation.merge(rows, groups)])

    def _accepted(self, moment: Moment, rows: Any) -> tuple[Any, Any]:
        """Rows of windows that are open, and the places of late rows. A row without a time has no window."""
        times, valid = times_of(rows)
        last = self.panes.last_ends(self.panes.starts(times))
        inside = last > times
        if valid is not None:
            inside &= valid
        in_time = last + self.updated_for > (NO_MARK if moment.before is None else moment.before)
        return rows_where(rows, inside & in_time), np.flatnonzero(inside & ~in_time)

    def _begun(self, moment: Moment, rows: Any) -> Any:
        """The panes of new rows."""
        if not rows.num_rows:
            return self.state.empty_table()
        hashes, keys, starts = hashes_of(rows), key_columns(rows, self.keys), self.panes.starts(times_of(rows)[0])
        groups = grouped(hashes, keys, starts)
        firsts = pa.array(groups.firsts)
        partial = self.aggregation.begin(rows, numbered(moment.epoch, rows.num_rows), groups)
        start = starts[groups.firsts]
        until = self.panes.last_ends(start) + self.updated_for
        heads = [hashes[groups.firsts], until, start, *(key.take(firsts) for key in keys)]
        return table_of(self.state, [*heads, *partial])

    def _closed(self, moment: Moment, rows: Any) -> Any:
        """The results of the windows that close."""
        assert moment.after is not None
        places, ends = self.panes.closing(rows[START].to_numpy(), moment.before, moment.after)
        if not len(places):
            return self.output.empty_table()
        rows = rows.take(pa.array(places)).combine_chunks()
        groups = grouped(hashes_of(rows), key_columns(rows, self.keys), ends)
        return self.results(rows, groups, ends[groups.firsts] - self.panes.size, ends[groups.firsts])

    def _updated(self, moment: Moment, new: Any, state: StateReader) -> Any:
        """The results of closed windows that new rows have changed."""
        if not self.updated_for or moment.before is None or not new.num_rows:
            return self.output.empty_table()
        closed = moment.before - self.updated_for, moment.before
        changing = np.unique(self.panes.closing(new[START].to_numpy(), *closed)[0])
        hashes = np.unique(hashes_of(new)[changing])
        if not len(hashes):
            return self.output.empty_table()
        old = live(state.rows_of(PANES, hashes), moment.before).select(self.state.names)
        rows = pa.concat_tables([old, new.take(pa.array(changing))]).combine_chunks()
        places, ends = self.panes.closing(rows[START].to_numpy(), *closed)
        rows = rows.take(pa.array(places)).combine_chunks()
        groups = grouped(hashes_of(rows), key_columns(rows, self.keys), ends)
        changed = np.logical_or.reduceat(places[groups.order] >= old.num_rows, groups.starts)
        order, lengths = groups.order[np.repeat(changed, groups.lengths)], groups.lengths[changed]
        groups = Groups(order, np.cumsum(lengths) - lengths)
        return self.results(rows, groups, ends[groups.firsts] - self.panes.size, ends[groups.firsts])

    def results(self, rows: Any, groups: Groups, starts: Any, ends: Any) -> Any:
        """The results of groups of rows of state, in order of the windows' ends."""
        finished = self.aggregation.finish(self.aggregation.merge(rows, groups))
        firsts = pa.array(groups.firsts)
        keys = [rows[name].combine_chunks().take(firsts) for name in self.keys]
        made = table_of(self.output, [starts, ends, *keys, *(finished[call] for call in self.picked)])
        order = np.argsort(ends, kind="stable")
        return made.take(pa.array(order))
