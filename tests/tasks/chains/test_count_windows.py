"""Windows of a number of rows, against lists cut into pieces."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.chain_work import ChainWork
from headgate.model.work import RowWise
from headgate.tasks.chains.aggregate_text import split
from headgate.tasks.chains.count_windows import count_windows
from tests.tasks.chains.memory_chain import InMemoryChain, in_epochs

SCHEMA = pa.schema([("k", pa.string()), ("__arg_0", pa.int64())])
CALLS = split({"n": "count(*)", "total": "sum(v)", "first": "first(v)", "all": "collect_list(v)"}).calls


def work(size: int) -> ChainWork:
    return ChainWork(
        before=lambda _, names: (RowWise(tuple(names[0]), columns=tuple((name, name) for name in names[0])),),
        start=lambda _, schemas: count_windows(size, ("k",), CALLS, schemas[0]),
        keys=lambda _: (("k",),),
        times=lambda _: (None,),
        late_by=lambda _: 0,
    )


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from([None, "", "a", "b"]), st.none() | st.integers(-9, 9)), max_size=80),
    sizes=st.lists(st.integers(0, 20), max_size=6),
    size=st.integers(1, 5),
    seed=st.integers(0, 1 << 30),
    few_hashes=st.booleans(),
)
def test_each_window_has_so_many_rows(
    rows: list[tuple[str | None, int | None]], sizes: list[int], size: int, seed: int, few_hashes: bool
) -> None:
    chain = InMemoryChain(work(size), None, [SCHEMA], seed, few_hashes)
    waiting: defaultdict[Any, list[Any]] = defaultdict(list)
    for epoch in in_epochs(rows, sizes):
        columns = [[key for key, _ in epoch], [value for _, value in epoch]]
        output = chain.feed(pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA))
        due: Counter[tuple[Any, ...]] = Counter()
        for key, value in epoch:
            waiting[key].append(value)
            if len(waiting[key]) == size:
                full = waiting.pop(key)
                known = [one for one in full if one is not None]
                due[key, size, sum(known) if known else None, full[0], tuple(known)] += 1
        made = Counter((*list(row.values())[:4], tuple(row["__agg_3"])) for row in output.to_pylist())
        assert made == due
