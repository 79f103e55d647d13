"""A chain of state in memory, to which happens what a runtime may do: partitions, merges, drops, superfluous rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from headgate.model.chain_work import HASH, UNTIL, Axis, ChainWork, Moment
from headgate.model.work import RowWise
from headgate.tasks.chains.hashing import hash_keys

EPOCH_HASH = 1 << 64


class InMemoryState:
    """The files of one partition, oldest first, by table."""

    def __init__(self, schemas: Mapping[str, pa.Schema], generous: bool) -> None:
        self.schemas, self.generous = schemas, generous
        self.files: dict[str, list[pa.Table]] = {name: [] for name in schemas}

    def _all(self, table: str) -> pa.Table:
        return pa.concat_tables([self.schemas[table].empty_table(), *self.files[table]])

    def rows(self, table: str, after: int | None = None, until: int | None = None) -> pa.Table:
        rows = self._all(table)
        if self.generous:
            return rows
        ends = rows[UNTIL].to_numpy()
        mask = np.ones(len(ends), bool)
        if after is not None:
            mask &= ends > after
        if until is not None:
            mask &= ends <= until
        return rows.filter(pa.array(mask))

    def rows_of(self, table: str, hashes: Any) -> pa.Table:
        assert (np.diff(hashes.astype(object)) > 0).all()
        rows = self._all(table)
        return rows if self.generous else rows.filter(pa.array(np.isin(rows[HASH].to_numpy(), hashes)))


class InMemoryChain:
    """A stateful task over partitions, fed with epochs."""

    def __init__(
        self,
        work: ChainWork,
        options: Any,
        schemas: Sequence[pa.Schema],
        seed: int = 0,
        few_hashes: bool = False,
    ) -> None:
        self.work, self.options, self.random = work, options, random.Random(seed)
        self.few_hashes = few_hashes
        self.eager = seed % 2 == 1
        """Whether the watermark of an epoch counts the epoch's own rows."""
        self.sides = work.before(options, [schema.names for schema in schemas])
        kernel = [projected(side, schema.empty_table()) for side, schema in zip(self.sides, schemas, strict=True)]
        self.chain = work.start(options, [table.schema for table in kernel])
        self.schemas = {table.name: table.schema for table in self.chain.tables}
        for table in self.chain.tables:
            assert table.schema.names[:2] == [HASH, UNTIL]
        self.states = [(0, EPOCH_HASH, self._state())]
        self.greatest: list[int | None] = [None] * len(schemas)
        self.before: int | None = None
        self.epoch = 0
        self.late = 0
        self.late_rows: list[tuple[int, dict[str, Any]]] = []
        self.merging: list[tuple[list[pa.Table], list[pa.Table], pa.Table]] = []
        """The files of a table and a partition, some of them, and what these have become."""

    def _state(self) -> InMemoryState:
        return InMemoryState(self.schemas, self.random.random() < 0.5)

    @property
    def watermark(self) -> int | None:
        """The watermark of the next epoch."""
        times = [
            greatest
            for greatest, name in zip(self.greatest, self.work.times(self.options), strict=True)
            if name is not None
        ]
        known = [time for time in times if time is not None]
        if not known or len(known) < len(times):
            return self.before
        mark = min(known) - self.work.late_by(self.options)
        return mark if self.before is None else max(mark, self.before)

    def feed(self, *sides: pa.Table, clock: int = 0) -> pa.Table:
        """One epoch: the task's new rows."""
        kernel = [self._kernel(side, rows) for side, rows in zip(range(len(sides)), sides, strict=True)]
        if self.eager:
            self._see(kernel)
        moment = Moment(self.epoch, self.before, self.watermark, clock)
        self.epoch += 1
        outputs = [self._folded(moment, kernel, sides, low, high, state) for low, high, state in self.states]
        self.before = moment.after
        self._see(kernel)
        self._upkeep()
        output = pa.concat_tables(outputs)
        assert output.schema.equals(self.chain.output), (output.schema, self.chain.output)
        return output if self.chain.after is None else projected(self.chain.after, output)

    def _kernel(self, side: int, rows: pa.Table) -> pa.Table:
        made = projected(self.sides[side], rows)
        if self.random.random() < 0.3:  # the types of texts that another reader has
            wide = [pa.field(f.name, pa.large_string() if f.type == pa.string() else f.type) for f in made.schema]
            made = made.cast(pa.schema(wide))
        names = self.work.keys(self.options)[side]
        hashes = hash_keys([made[name] for name in names], made.num_rows)
        if self.few_hashes:  # collisions
            hashes = hashes // np.uint64(1 << 62) * np.uint64(1 << 62)
        return made.add_column(0, HASH, pa.array(hashes))

    def _folded(
        self, moment: Moment, kernel: list[pa.Table], sides: Any, low: int, high: int, state: InMemoryState
    ) -> pa.Table:
        masks = [np.array([low <= hashed < high for hashed in rows[HASH].to_pylist()], bool) for rows in kernel]
        own = [rows.filter(pa.array(mask)) for rows, mask in zip(kernel, masks, strict=True)]
        folded = self.chain.fold(moment, own, state)
        for place, (late, mask) in enumerate(zip(folded.late, masks, strict=True)):
            self.late += len(late)
            originals = sides[place].filter(pa.array(mask)).take(pa.array(late, pa.int64())).to_pylist()
            self.late_rows += [(place, row) for row in originals]
        for name, rows in folded.appended.items():
            assert rows.schema.equals(self.schemas[name]), (rows.schema, self.schemas[name])
            hashes = rows[HASH].to_numpy()
            assert rows.num_rows
            assert (hashes[1:] >= hashes[:-1]).all()
            state.files[name].append(rows)
        if self.random.random() < 0.3:
            for table in self.chain.tables:
                mark = folded.dead.get(table.axis)
                if mark is not None and table.axis is not Axis.NEVER:
                    files = state.files[table.name]
                    state.files[table.name] = [rows.filter(pa.array(rows[UNTIL].to_numpy() > mark)) for rows in files]
        return folded.output

    def _see(self, kernel: list[pa.Table]) -> None:
        for side, name in enumerate(self.work.times(self.options)):
            if name is None:
                continue
            times = kernel[side][name].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).drop_null().to_pylist()
            self.greatest[side] = max(
                [*times, *([] if self.greatest[side] is None else [self.greatest[side]])], default=None
            )

    def _upkeep(self) -> None:
        """Merge some files of some partitions, at once or beside the next epoch; now and then cut partitions anew."""
        for files, some, merged in self.merging:
            places = [at for at in range(len(files)) if len(files[at:]) >= len(some) and _same(files[at:], some)]
            if places:
                files[places[0] : places[0] + len(some)] = [merged]
        self.merging.clear()
        for _, _, state in self.states:
            for name, files in state.files.items():
                if len(files) > 1 and self.random.random() < 0.3:
                    count = self.random.randint(2, len(files))
                    at = self.random.randint(0, len(files) - count)
                    some = files[at : at + count]
                    merged = self.chain.merge(name, pa.concat_tables(some))
                    assert merged.schema.equals(self.schemas[name])
                    if self.random.random() < 0.5:
                        files[at : at + count] = [merged]
                    else:
                        self.merging.append((files, some, merged))
        if self.random.random() < 0.15:
            self._rescale(self.random.choice([1, 2, 3, 8]))

    def _rescale(self, count: int) -> None:
        edges = [place * EPOCH_HASH // count for place in range(count)] + [EPOCH_HASH]
        states = []
        for low, high in pairwise(edges):
            new = self._state()
            for _, _, old in self.states:
                for name, files in old.files.items():
                    for rows in files:
                        mask = [low <= hashed < high for hashed in rows[HASH].to_pylist()]
                        new.files[name].append(rows.filter(pa.array(mask, pa.bool_())))
            states.append((low, high, new))
        self.states = states


def _same(files: Sequence[pa.Table], some: Sequence[pa.Table]) -> bool:
    return all(one is other for one, other in zip(files, some, strict=False))


def projected(row: RowWise, table: pa.Table) -> pa.Table:
    """What Spark SQL would make of rows, for columns and for expressions that DuckDB has as well."""
    assert row.condition is None
    assert row.columns is not None
    columns: dict[str, Any] = {}
    for name, text in row.columns:
        plain = text.strip().strip("`")
        matching = [column for column in table.column_names if column.casefold() == plain.casefold()]
        columns[name] = table[matching[0]] if matching else _evaluated(text, table)
    return pa.table(columns)


@cache
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("set TimeZone = 'UTC'")
    connection.execute("create macro struct(one, other) as {'one': one, 'other': other}")
    return connection


def _evaluated(text: str, table: pa.Table) -> Any:
    numbered = table.append_column("__place", pa.array(range(table.num_rows), pa.int64()))
    connection = database()
    connection.register("rows", numbered)
    query = f"select {text.replace('`', chr(34))} as value from rows order by __place"
    return connection.sql(query).to_arrow_table()["value"]


def in_epochs(rows: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Rows cut into epochs of these sizes; what is left is the last one."""
    epochs, start = [], 0
    for size in sizes:
        epochs.append(list(rows[start : start + size]))
        start += size
    return [*epochs, list(rows[start:])]


Table = Callable[[Sequence[Any]], pa.Table]
