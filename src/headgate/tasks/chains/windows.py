"""Tumbling and sliding windows: partial aggregates by pane and key are appended, and merged when a window closes.

A window closes in the one epoch whose step of the watermark, (before, after], has its end: never twice, never none,
whatever the state still holds. A row is late if all windows that it belongs to have closed before the epoch.
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

    def fold(self, moment: Moment, sides: Sequence[Any], state: StateReader) -> Folded:
        """Fold an epoch."""
        rows, late = self._accepted(moment, sides[0])
        new = self._begun(moment, rows)
        output = self.output.empty_table()
        if moment.after is not None and moment.after != moment.before:
            reach = moment.after + self.panes.size
            old = live(state.rows(PANES, moment.before, reach), moment.before)
            output = self._closed(moment, pa.concat_tables([old.select(self.state.names), new]))
            new = live(new, moment.after)
        appended = {PANES: new} if new.num_rows else {}
        return Folded(output, appended, (late,), after_mark(moment), new.num_rows)

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
        in_time = last > (NO_MARK if moment.before is None else moment.before)
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
        heads = [hashes[groups.firsts], self.panes.last_ends(start), start, *(key.take(firsts) for key in keys)]
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

    def results(self, rows: Any, groups: Groups, starts: Any, ends: Any) -> Any:
        """The results of groups of rows of state, in order of the windows' ends."""
        finished = self.aggregation.finish(self.aggregation.merge(rows, groups))
        firsts = pa.array(groups.firsts)
        keys = [rows[name].combine_chunks().take(firsts) for name in self.keys]
        made = table_of(self.output, [starts, ends, *keys, *(finished[call] for call in self.picked)])
        order = np.argsort(ends, kind="stable")
        return made.take(pa.array(order))
