"""The hash of keys: equal for equal keys of any type, and the same for ever."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.tasks.chains.grouping import grouped
from headgate.tasks.chains.hashing import hash_keys

VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-5, 5)),
    (pa.string(), st.text("aé\x00", max_size=20)),
    (pa.binary(), st.binary(max_size=3)),
    (pa.float64(), st.sampled_from([0.0, 1.5, -2.25, float("inf")])),
    (pa.decimal128(12, 2), st.integers(-300, 300).map(lambda n: Decimal(n) / 100)),
    (pa.bool_(), st.booleans()),
    (pa.timestamp("us", "UTC"), st.integers(0, 3)),
    (pa.date32(), st.integers(0, 3)),
    (pa.list_(pa.int32()), st.lists(st.none() | st.integers(0, 2), max_size=3)),
    (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(0, 2), "b": st.sampled_from([None, "x"])}),
    ),
]


@st.composite
def key_tables(draw: st.DrawFn) -> list[pa.Array]:
    kinds = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
    rows = draw(st.integers(0, 30))
    return [pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind) for kind, values in kinds]


def plain(columns: Sequence[pa.Array]) -> list[str]:
    return [repr(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


@given(key_tables(), st.integers(0, 5))
def test_keys_have_one_hash_exactly_if_they_are_equal(columns: list[pa.Array], start: int) -> None:
    keys = plain(columns)
    hashes = hash_keys(columns, len(keys)).tolist()
    assert len(set(zip(keys, hashes, strict=True))) == len(set(keys)) == len(set(hashes))
    sliced = [column.slice(start) for column in columns]
    assert hash_keys(sliced, len(sliced[0])).tolist() == hashes[start:]


@given(key_tables(), st.booleans())
def test_groups_are_the_rows_of_equal_keys_even_if_all_hashes_collide(columns: list[pa.Array], collide: bool) -> None:
    keys = plain(columns)
    hashes = hash_keys(columns, len(keys))
    groups = grouped(np.zeros_like(hashes) if collide else hashes, columns)
    made = [part.tolist() for part in np.split(groups.order, groups.starts[1:])] if keys else []
    assert sorted(made) == sorted([place for place, key in enumerate(keys) if key == one] for one in set(keys))


def test_what_spark_takes_for_one_key_is_one() -> None:
    numbers = pa.array([0.0, -0.0, float("nan"), np.frombuffer(b"\x01\0\0\0\0\0\xf8\xff", "<f8")[0]])
    zero, minus, one, other = hash_keys([numbers], 4).tolist()
    assert zero == minus
    assert one == other
    assert len(grouped(hash_keys([numbers], 4), [numbers])) == 2
    for narrow, wide in ((pa.int8(), pa.int64()), (pa.float32(), pa.float64()), (pa.string(), pa.large_string())):
        values = pa.array(["5", None] if narrow == pa.string() else [5, None], narrow)
        assert hash_keys([values], 2).tolist() == hash_keys([values.cast(wide)], 2).tolist()
    texts = pa.array(["a", None, "a"])
    assert hash_keys([texts.dictionary_encode()], 3).tolist() == hash_keys([texts], 3).tolist()


def test_the_hash_does_not_change() -> None:
    """State on disk is addressed by it."""
    columns = [
        pa.array(["", "Zürich", None, "x" * 2_000]),
        pa.array([1, None, -3, 4]),
        pa.array([Decimal("1.50"), None, Decimal("-2.00"), Decimal("0.00")]),
        pa.array([[1, 2], [], None, [None]]),
    ]
    assert hash_keys(columns, 4).tolist() == EXPECTED


def test_a_map_is_no_key() -> None:
    with pytest.raises(InputError, match="cannot be hashed; take a field of it"):
        hash_keys([pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))], 1)


EXPECTED = [1_027_673_375_295_472_305, 3_641_114_885_823_655_223, 12_308_391_572_839_838_786, 8_496_868_179_726_800_837]
