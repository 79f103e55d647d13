"""Packs hold what was put in, and tasks that do many rows at once do what they do row by row."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.work import KeyedWork
from headgate.runtime.keyed.host import Results, Values, hosting, stepped
from headgate.runtime.keyed.packing import key_codes, key_text, opened, packs
from headgate.tasks.keyed import Count
from headgate.tasks.registry import default_registry
from headgate_riotbench import interpolate
from headgate_riotbench.gather import Accumulate
from headgate_riotbench.interpolate import Interpolate

KEYS = st.one_of(st.none(), st.text(max_size=3))
ROWS = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.floats()), st.integers(0, 5)), max_size=30)


def batch_of(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    kinds = [pa.string(), pa.float64(), pa.int64()]
    return pa.record_batch([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], ["k", "f", "n"])


@settings(deadline=None, max_examples=50)
@given(ROWS, st.sampled_from([(0,), (1,), (0, 1), (2, 0)]), st.sampled_from([1, 2, 32]))
def test_every_row_is_in_one_pack_with_all_of_its_key(
    rows: list[tuple[Any, ...]], key: tuple[int, ...], groups: int
) -> None:
    batch = batch_of(rows)
    outcome: dict[str, set[int]] = {}
    again: dict[str, list[str]] = {}
    for group, pack in packs(batch, key, groups):
        for row in map(tuple, (one.values() for one in opened(pack, batch.schema).to_pylist())):
            text = key_text([row[at] for at in key])
            outcome.setdefault(text, set()).add(group)
            again.setdefault(text, []).append(repr(row))
    wanted: dict[str, list[str]] = {}
    for row in rows:
        wanted.setdefault(key_text([row[at] for at in key]), []).append(repr(row))
    assert again == wanted  # in the order in which they came
    assert all(len(of_key) == 1 for of_key in outcome.values())


def test_keys_of_lists_and_structs() -> None:
    codes, texts = key_codes([pa.array([[1], [2], [1]]), pa.array([{"a": 1}, {"a": 1}, {"a": 1}])])
    assert codes.tolist() == [0, 1, 0]
    assert texts == ["[[1], {'a': 1}]", "[[2], {'a': 1}]"]


def work(name: str) -> KeyedWork:
    outcome = default_registry()[name].work
    assert isinstance(outcome, KeyedWork)
    return outcome


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.one_of(st.none(), st.integers(-9, 9).map(float)), max_size=12), max_size=4))
def test_many_rows_at_once_as_one_by_one(batches: list[list[float | None]]) -> None:
    tasks = [
        ("a", "x", work("interpolate"), Interpolate(key=("k",), columns=("v",), size=3)),
        ("b", "x", work("interpolate"), Interpolate(key=("k",), columns=("v", "w"), size=2)),
        ("c", "x", work("count"), Count(key=("k",))),
        ("d", "x", work("accumulate"), Accumulate(key=("k",), columns=("w",), size=4)),
    ]
    does = hosting(tasks, ["v", "k", "w"])
    message = []
    for many in (1, 1_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(interpolate, "MANY", many)
            stored, results = None, Results(len(tasks))
            for values in batches:
                columns = {"v": values, "w": values[::-1]}
                asked = [pa.array(columns[name], pa.float64()) for name in _asked(does.columns)]
                stored = stepped(stored, Values(asked, len(values)), (0, len(values)), does.tasks, results)
            message.append(
                ([a.to_pylist() for a in results.arrays()], None if stored is None else pickle.loads(stored))
            )
    assert message[0] == message[1]


def _asked(places: tuple[int, ...]) -> list[str]:
    return [["v", "k", "w"][at] for at in places]


def test_a_row_that_raises_is_told_of_and_nothing_is_forgotten() -> None:
    does = hosting([("a", "x", work("interpolate"), Interpolate(key=("k",), columns=("v",), size=3))], ["v"])
    results = Results(1)
    values = Values([pa.array(["1", "warm", None])], 3)
    stored = stepped(None, values, (0, 3), does.tasks, results)
    numbers, _, errors = (array.to_pylist() for array in results.arrays())
    assert numbers == [[None], [None], [1.0]]
    assert [message and message[0] for message in errors] == [
        None,
        "ValueError: could not convert string to float: 'warm'",
        None,
    ]
    assert pickle.loads(stored) == {"a": {"x": ((1.0,),)}}
