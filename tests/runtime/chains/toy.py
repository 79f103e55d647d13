"""A small kernel for tests: how many rows of each key there are in each window, and their sum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.model.chain_work import HASH, UNTIL, Axis, Chain, ChainWork, Folded, Moment, StateReader, StateTable
from headgate.model.work import RowWise
from headgate.tasks.chains.hashing import hash_keys

__all__ = ["KERNEL", "SIDE", "SIZE", "started"]

SIZE = 10_000_000
SIDE = pa.schema([("k", pa.string()), ("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])
STATE = pa.schema([(HASH, pa.uint64()), (UNTIL, pa.int64()), ("k", pa.string()), ("n", pa.int64()), ("v", pa.int64())])
OUTPUT = pa.schema([("end", pa.int64()), ("k", pa.string()), ("n", pa.int64()), ("v", pa.int64())])
TABLE = StateTable("windows", STATE, Axis.EVENT)

Sums = dict[tuple[int, str | None], tuple[int, int]]


def _table(sums: Sums) -> pa.Table:
    """Sums as rows of state."""
    hashes = hash_keys([pa.array([key for _, key in sums], pa.string())], len(sums))
    rows = [(end, key, n, v) for (end, key), (n, v) in sums.items()]
    columns = [hashes, *(zip(*rows, strict=True) if rows else [[]] * 4)]
    table = pa.table([pa.array(list(c), f.type) for c, f in zip(columns, STATE, strict=True)], schema=STATE)
    return table.take(pa.array(np.argsort(hashes, kind="stable")))


def _sums(rows: pa.Table, most: int | None = None) -> Sums:
    found: Sums = defaultdict(lambda: (0, 0))
    for row in rows.to_pylist():
        if most is None or row[UNTIL] <= most:
            n, v = found[row[UNTIL], row["k"]]
            found[row[UNTIL], row["k"]] = n + row["n"], v + row["v"]
    return found


def _fold(moment: Moment, sides: Sequence[pa.Table], state: StateReader) -> Folded:
    (rows,) = sides
    new: Sums = defaultdict(lambda: (0, 0))
    late = []
    times = rows.column("t").cast(pa.int64()).to_pylist()
    for at, (key, time, value) in enumerate(
        zip(rows.column("k").to_pylist(), times, rows.column("v").to_pylist(), strict=True)
    ):
        if value == -1:
            raise ValueError("no such value")
        end = time - time % SIZE + SIZE
        if moment.before is not None and end <= moment.before:
            late.append(at)
        else:
            n, v = new[end, key]
            new[end, key] = n + 1, v + value
    output: list[dict[str, Any]] = []
    if moment.after is not None:
        closing = _sums(pa.concat_tables([state.rows("windows", moment.before, moment.after), _table(new)]))
        for (end, key), (n, v) in sorted(closing.items(), key=repr):
            if end <= moment.after and (moment.before is None or end > moment.before):
                output.append({"end": end, "k": key, "n": n, "v": v})
    return Folded(
        pa.Table.from_pylist(output, OUTPUT),
        {"windows": _table({k: s for k, s in new.items() if moment.after is None or k[0] > moment.after})},
        [np.array(late, np.int64)],
        {} if moment.after is None else {Axis.EVENT: moment.after},
    )


def _merge(name: str, rows: pa.Table) -> pa.Table:
    assert name == "windows"
    return _table(_sums(rows))


def started(options: Any = None, sides: Sequence[Any] = ()) -> Chain:
    """The chain of the kernel."""
    del options, sides
    return Chain((TABLE,), OUTPUT, _fold, _merge)


KERNEL = ChainWork(
    before=lambda _, sides: [RowWise(tuple(names)) for names in sides],
    start=started,
    keys=lambda _: [("k",)],
    times=lambda _: ["t"],
    late_by=lambda _: 2_000_000,
)
