"""The count of different values of each key so far: a row of state for each key and value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.model.chain_work import Folded, Moment, StateReader
from headgate.tasks.chains.columns import one_chunk, summed
from headgate.tasks.chains.grouping import grouped
from headgate.tasks.chains.keyed import FOREVER, VALUE, KeyedStep, rows_with_results
from headgate.tasks.chains.rows import hashes_of, key_columns, table_of
from headgate.tasks.heavy import np, pa

__all__ = ["VALUES", "DistinctFold"]

VALUES = "values"


@dataclass(frozen=True)
class DistinctFold:
    """Exact counts of different values, for given types. Nulls are not counted."""

    keys: tuple[str, ...]
    state: Any
    """The schema of the state: hash, until, keys, value."""

    output: Any
    columns: tuple[str | int, ...]

    def fold(self, moment: Moment, sides: Sequence[Any], state: StateReader) -> Folded:
        """Fold an epoch."""
        del moment
        (rows,) = sides
        none = (np.zeros(0, np.int64),)
        if not rows.num_rows:
            return Folded(self.output.empty_table(), late=none)
        old = self.merge(VALUES, state.rows_of(VALUES, np.unique(hashes_of(rows))).select(self.state.names))
        new = self._new(old, rows)
        groups = grouped(hashes_of(rows), key_columns(rows, self.keys))
        sofar = np.cumsum(new[groups.order])
        before = sofar[groups.starts] - new[groups.firsts]
        counts = sofar - np.repeat(before, groups.lengths) + np.repeat(self._known(old, rows, groups), groups.lengths)
        made = KeyedStep([], [pa.array(counts.astype(np.float64))])
        added = self._rows(rows.filter(pa.array(new)))
        output = rows_with_results(rows, groups, made, self.columns, self.output)
        return Folded(output, {VALUES: added} if added.num_rows else {}, none, {}, added.num_rows)

    def merge(self, table: str, rows: Any) -> Any:
        """Each value of a key once."""
        del table
        groups = grouped(hashes_of(rows), key_columns(rows, (*self.keys, VALUE)))
        return rows.take(pa.array(groups.firsts if len(groups) else groups.starts)).combine_chunks()

    def _new(self, old: Any, rows: Any) -> Any:
        """Which rows have a value that their key did not have before."""
        names = (*self.keys, VALUE)
        both = [
            pa.concat_arrays([one, other])
            for one, other in zip(key_columns(old, names), key_columns(rows, names, self.state), strict=True)
        ]
        groups = grouped(np.concatenate([hashes_of(old), hashes_of(rows)]), both)
        firsts = groups.firsts[groups.firsts >= old.num_rows] - old.num_rows
        new = np.zeros(rows.num_rows, bool)
        new[firsts] = True
        return new & one_chunk(rows[VALUE]).is_valid().to_numpy(zero_copy_only=False)

    def _known(self, old: Any, rows: Any, own: Any) -> Any:
        """How many values each key of the rows had before."""
        heads = pa.array(own.firsts)
        both = [
            pa.concat_arrays([one, other.take(heads)])
            for one, other in zip(key_columns(old, self.keys), key_columns(rows, self.keys, self.state), strict=True)
        ]
        groups = grouped(np.concatenate([hashes_of(old), hashes_of(rows)[own.firsts]]), both)
        sizes = summed((groups.order < old.num_rows).astype(np.int64), groups)
        counts = np.zeros(len(own), np.int64)
        here = groups.lasts >= old.num_rows
        counts[groups.lasts[here] - old.num_rows] = sizes[here]
        return counts

    def _rows(self, rows: Any) -> Any:
        keys = key_columns(rows, (*self.keys, VALUE))
        made = table_of(self.state, [hashes_of(rows), np.full(rows.num_rows, FOREVER), *keys])
        return made.take(pa.array(np.argsort(hashes_of(rows), kind="stable")))
