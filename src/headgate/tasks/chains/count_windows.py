"""Windows of so many rows of a key: a row of state for each key, which is the window that is not full yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.model.chain_work import HASH, UNTIL, Axis, Chain, Folded, Moment, StateReader, StateTable
from headgate.tasks.chains.aggregate_text import AggregateCall
from headgate.tasks.chains.aggregation import Aggregation, numbered, state_schema
from headgate.tasks.chains.columns import one_chunk, summed, values_of
from headgate.tasks.chains.grouping import grouped
from headgate.tasks.chains.keyed import FOREVER, looked_up, newest
from headgate.tasks.chains.rows import hashes_of, key_columns, table_of
from headgate.tasks.heavy import np, pa

__all__ = ["CountWindowFold", "count_windows"]

FILLING, COUNT, NUMBER = "filling", "__count", "__number"


def count_windows(size: int, keys: tuple[str, ...], calls: Sequence[AggregateCall], rows: Any) -> Chain:
    """Aggregates of each ``size`` rows of a key in order of arrival, for rows of an Arrow schema."""
    aggregation = Aggregation.of(calls, rows)
    key_fields = [(name, rows.field(name).type) for name in keys]
    state = state_schema((COUNT, pa.int64()), *key_fields, *aggregation.state)
    fold = CountWindowFold(size, keys, aggregation, state, pa.schema([*key_fields, *aggregation.results]))
    return Chain((StateTable(FILLING, state, Axis.NEVER, key=keys),), fold.output, fold.fold, fold.merge)


@dataclass(frozen=True)
class CountWindowFold:
    """Windows of a number of rows, for given types."""

    size: int
    keys: tuple[str, ...]
    aggregation: Aggregation
    state: Any
    """The schema of the state: hash, until, how many rows, keys, state of the aggregates. With 0 rows it is empty."""

    output: Any

    def fold(self, moment: Moment, sides: Sequence[Any], state: StateReader) -> Folded:
        """Fold an epoch."""
        (rows,) = sides
        none = (np.zeros(0, np.int64),)
        if not rows.num_rows:
            return Folded(self.output.empty_table(), late=none)
        hashes, keys = hashes_of(rows), key_columns(rows, self.keys, self.state)
        own = grouped(hashes, keys)
        heads = [key.take(pa.array(own.firsts)) for key in keys]
        read = state.rows_of(FILLING, np.unique(hashes)).select(self.state.names)
        old, known = looked_up(newest(read, self.keys), hashes[own.firsts], heads, self.keys)
        before = values_of(one_chunk(old[COUNT]), np.int64)
        numbers = np.empty(len(hashes), np.int64)
        places = np.arange(len(hashes)) - np.repeat(own.starts, own.lengths)
        numbers[own.order] = (np.repeat(before, own.lengths) + places) // self.size
        begun = self._begun(moment, rows, hashes, keys, numbers)
        filling = old.filter(pa.array(before > 0)).append_column(
            NUMBER, pa.array(np.zeros((before > 0).sum(), np.int64))
        )
        output, kept = self._divided(pa.concat_tables([filling, begun]).combine_chunks())
        return Folded(output, {FILLING: kept}, none, {}, int((~known).sum()))

    def merge(self, table: str, rows: Any) -> Any:
        """The newest row of each key."""
        del table
        return newest(rows, self.keys)

    def _begun(self, moment: Moment, rows: Any, hashes: Any, keys: Sequence[Any], numbers: Any) -> Any:
        """State of the new rows of each window."""
        groups = grouped(hashes, keys, numbers)
        firsts = pa.array(groups.firsts)
        partial = self.aggregation.begin(rows, numbered(moment.epoch, rows.num_rows), groups)
        heads = [hashes[groups.firsts], np.full(len(groups), FOREVER), groups.lengths, *(k.take(firsts) for k in keys)]
        return table_of(self.state, [*heads, *partial]).append_column(NUMBER, pa.array(numbers[groups.firsts]))

    def _divided(self, rows: Any) -> tuple[Any, Any]:
        """The results of windows that are full, and of each key the last window if it is not, or an empty one."""
        groups = grouped(hashes_of(rows), key_columns(rows, self.keys), rows[NUMBER].to_numpy())
        counts = summed(rows[COUNT].to_numpy()[groups.order], groups)
        heads = rows.select([HASH, UNTIL, *self.keys]).take(pa.array(groups.firsts)).combine_chunks()
        merged = self.aggregation.merge(rows, groups)
        full = counts == self.size
        keys = [one_chunk(heads[name]) for name in self.keys]
        results = table_of(self.output, [*keys, *self.aggregation.finish(merged)]).filter(pa.array(full))
        columns = [one_chunk(heads[HASH]), one_chunk(heads[UNTIL]), np.where(full, 0, counts), *keys, *merged]
        return results, newest(table_of(self.state, columns), self.keys)
