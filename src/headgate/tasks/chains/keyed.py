"""Tasks that keep something of each key: a row of state for each, of which the newest counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.model.chain_work import UNTIL, Axis, Folded, Moment, StateReader
from headgate.tasks.chains.columns import one_chunk
from headgate.tasks.chains.grouping import Groups, grouped
from headgate.tasks.chains.rows import hashes_of, key_columns, live, table_of, times_of
from headgate.tasks.heavy import np, pa

__all__ = ["KEYS", "VALUE", "KeyedFold", "KeyedKernel", "KeyedStep", "TimeToLive", "state_names"]

KEYS, VALUE = "keys", "__value"
FOREVER = (1 << 63) - 1


@dataclass(frozen=True)
class KeyedStep:
    """What a kernel makes of an epoch."""

    state: Sequence[Any]
    """The new state of each key, an array for each column."""

    results: Sequence[Any] = ()
    """The results of the sorted rows, an array for each new column."""

    passes: Any = None
    """Which sorted rows pass, a NumPy array; ``None``: all."""

    changed: Any = None
    """Which keys have new state; ``None``: all."""


class KeyedKernel(Protocol):
    """What a task does, for all keys of an epoch at once."""

    @property
    def state(self) -> Sequence[Any]:
        """The types of the columns of its state."""

    def step(self, old: Sequence[Any], values: Any, groups: Groups) -> KeyedStep:
        """The step of an epoch, from the state of each key (null: none yet) and the sorted values of the rows."""


def state_names(kernel: KeyedKernel) -> list[str]:
    """The names of the columns of a kernel's state."""
    return [f"__state_{place}" for place in range(len(kernel.state))]


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """How long a key is kept, in microseconds after its last row, or after its first."""

    axis: Axis = Axis.NEVER
    span: int = 0
    from_first: bool = False


@dataclass(frozen=True)
class KeyedFold:
    """A keyed task for given types."""

    keys: tuple[str, ...]
    kernel: KeyedKernel
    state: Any
    """The schema of the state: hash, until, keys, the kernel's columns."""

    output: Any
    columns: tuple[str | int, ...]
    """For each column of the output the row's column, or the number of the result."""

    life: TimeToLive = TimeToLive()
    time: str | None = None

    def fold(self, moment: Moment, sides: Sequence[Any], state: StateReader) -> Folded:
        """Fold an epoch."""
        (rows,) = sides
        dead = self._dead(moment)
        if not rows.num_rows:
            return Folded(self.output.empty_table(), late=(np.zeros(0, np.int64),), dead=dead)
        hashes, keys = hashes_of(rows), key_columns(rows, self.keys)
        groups = grouped(hashes, keys)
        heads = [key.take(pa.array(groups.firsts)) for key in keys]
        old, known = self._old(moment, hashes[groups.firsts], heads, state)
        values = one_chunk(rows[VALUE]).take(pa.array(groups.order))
        made = self.kernel.step([one_chunk(old[name]) for name in state_names(self.kernel)], values, groups)
        until = self._until(moment, rows, groups, old, known)
        new = table_of(self.state, [hashes[groups.firsts], until, *heads, *made.state])
        if made.changed is not None:
            new = new.filter(pa.array(made.changed))
        appended = {KEYS: new} if new.num_rows else {}
        late = (np.zeros(0, np.int64),)
        return Folded(self._output(rows, groups, made), appended, late, dead, int((~known).sum()))

    def merge(self, table: str, rows: Any) -> Any:
        """The newest row of each key."""
        del table
        groups = grouped(hashes_of(rows), key_columns(rows, self.keys))
        return rows.take(pa.array(groups.lasts if len(groups) else groups.starts)).combine_chunks()

    def _mark(self, moment: Moment) -> int | None:
        """What rows of state must be beyond to be alive."""
        marks = {Axis.EVENT: moment.before, Axis.CLOCK: moment.clock}
        return marks.get(self.life.axis)

    def _dead(self, moment: Moment) -> dict[Axis, int]:
        marks = {Axis.EVENT: moment.after, Axis.CLOCK: moment.clock}
        mark = marks.get(self.life.axis)
        return {} if mark is None else {self.life.axis: mark}

    def _old(self, moment: Moment, hashes: Any, heads: Sequence[Any], state: StateReader) -> tuple[Any, Any]:
        """The state of each key, nulls where there is none, and where there is one."""
        read = state.rows_of(KEYS, np.unique(hashes)).select(self.state.names)
        old = live(self.merge(KEYS, read), self._mark(moment)).combine_chunks()
        both = [pa.concat_arrays([one_chunk(old[name]), head]) for name, head in zip(self.keys, heads, strict=True)]
        groups = grouped(np.concatenate([hashes_of(old), hashes]), both)
        matching = (groups.firsts < old.num_rows) & (groups.lasts >= old.num_rows)
        places, known = np.zeros(len(hashes), np.int64), np.zeros(len(hashes), bool)
        at = groups.lasts[matching] - old.num_rows
        places[at], known[at] = groups.firsts[matching], True
        if not old.num_rows:
            return pa.Table.from_arrays(
                [pa.nulls(len(hashes), field.type) for field in self.state], self.state.names
            ), known
        return old.take(pa.array(places, mask=~known)).combine_chunks(), known

    def _until(self, moment: Moment, rows: Any, groups: Groups, old: Any, known: Any) -> Any:
        if self.life.axis is Axis.NEVER:
            return np.full(len(groups), FOREVER)
        if self.life.axis is Axis.CLOCK:
            seen = np.full(len(groups), moment.clock)
        else:
            assert self.time is not None
            times, valid = times_of(rows, self.time)
            times = times if valid is None else np.where(valid, times, moment.before or 0)
            seen = (
                times[groups.firsts]
                if self.life.from_first
                else np.maximum.reduceat(times[groups.order], groups.starts)
            )
        before = one_chunk(old[UNTIL]).fill_null(0).to_numpy(zero_copy_only=False)
        if self.life.from_first:
            return np.where(known, before, seen + self.life.span)
        return np.where(known, np.maximum(before, seen + self.life.span), seen + self.life.span)

    def _output(self, rows: Any, groups: Groups, made: KeyedStep) -> Any:
        """The rows that pass, in order of arrival, with their results."""
        back = np.empty(len(groups.order), np.int64)
        back[groups.order] = np.arange(len(groups.order))
        passing = np.arange(rows.num_rows) if made.passes is None else np.flatnonzero(made.passes[back])
        sorted_places, places = pa.array(back[passing]), pa.array(passing)
        arrays = [
            one_chunk(rows[source]).take(places)
            if isinstance(source, str)
            else made.results[source].take(sorted_places)
            for source in self.columns
        ]
        return pa.Table.from_arrays(
            [array.cast(field.type) for array, field in zip(arrays, self.output, strict=True)], schema=self.output
        )
