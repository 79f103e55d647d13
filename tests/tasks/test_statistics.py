"""Keyed steps against NumPy, pandas and plain counting."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.tasks import BUILT_IN
from headgate.tasks.keyed_base import step_of
from headgate.tasks.keyed_results import row_with_result
from headgate_riotbench import TYPES as RIOTBENCH

BY_NAME = {kind.name: kind for kind in (*BUILT_IN, *RIOTBENCH)}
maybe = st.none() | st.floats(-1e6, 1e6)


def results(name: str, rows: list[dict[str, Any]], **options: Any) -> list[Any]:
    """What a keyed task tells of each row of one key; a text is read as JSON."""
    config: Any = BY_NAME[name].config.model_validate({"key": ["k"], **options})
    names = list(rows[0]) if rows else ["v"]
    step, state, outcome = step_of(BY_NAME[name], config, names), None, []
    for row in rows:
        state, result = step(state, list(row.values()))
        outcome.append(json.loads(result) if isinstance(result, str) else result)
    return outcome


def column(values: list[Any]) -> list[dict[str, Any]]:
    return [{"v": value} for value in values]


@given(st.lists(maybe, min_size=1, max_size=40), st.integers(1, 7))
def test_block_average_is_the_mean_of_each_block(values: list[float | None], size: int) -> None:
    there = [value for value in values if value is not None]
    blocks = [there[first : first + size] for first in range(0, len(there) - size + 1, size)]
    outcome = [r for r in results("block_average", column(values), column="v", size=size) if r is not None]
    assert outcome == pytest.approx([np.mean(block) for block in blocks])
    every = results("block_average", column(values), column="v", size=size, every=True)
    done = [sum(v is not None for v in values[: place + 1]) // size for place in range(len(values))]
    assert every == pytest.approx([None if n == 0 else np.mean(blocks[n - 1]) for n in done])


@given(st.lists(maybe, min_size=1, max_size=40))
def test_running_tells_of_all_values_so_far(values: list[float | None]) -> None:
    wanted = {"n": "count", "total": "sum", "average": "mean", "least": "min", "most": "max"}
    outcome = results("running", column(values), column="v", columns=wanted)
    for place, message in enumerate(outcome):
        there = [value for value in values[: place + 1] if value is not None]
        expected = (sum(there), np.mean(there), min(there), max(there)) if there else (None,) * 4
        assert list(message.values()) == pytest.approx([len(there), *expected], abs=1e-6)
    for name, of in wanted.items():
        alone = results("running", column(values), column="v", columns={name: of})
        assert alone == pytest.approx([message[name] for message in outcome])


@given(st.lists(maybe, min_size=1, max_size=40), st.integers(1, 6))
def test_interpolate_fills_with_the_mean_of_the_last(values: list[float | None], size: int) -> None:
    outcome = results("interpolate", column(values), columns=["v"], size=size)
    last = pd.Series([v for v in values if v is not None], dtype=float).rolling(size, min_periods=1).mean()
    seen = 0
    for value, result in zip(values, outcome, strict=True):
        if value is not None:
            seen += 1
            assert result is None
        else:
            assert result == (None if seen == 0 else pytest.approx(last[seen - 1], abs=1e-6))


def test_interpolate_of_several_columns_fills_each_by_itself() -> None:
    rows: list[dict[str, Any]] = [
        {"a": 1.0, "b": 10.0},
        {"a": None, "b": 20.0},
        {"a": None, "b": None},
        {"a": 3.0, "b": 30.0},
    ]
    outcome = results("interpolate", rows, columns=["a", "b"], size=2)
    assert outcome == [None, {"a": 1.0}, {"a": 1.0, "b": 15.0}, None]


def test_join_fields_makes_a_message_whole() -> None:
    parts = [("t", "1.5"), ("other", "9"), ("h", None), ("t", "2.5"), ("id", "x"), ("t", "7"), ("h", "8"), ("id", "y")]
    rows = [{"field": name, "value": value} for name, value in parts]
    outcome = results("join_fields", rows, columns="t double, h double, id string")
    whole = [result for result in outcome if result is not None]
    assert whole == [{"t": 2.5, "h": None, "id": "x"}, {"t": 7.0, "h": 8.0, "id": "y"}]
    assert outcome.index(whole[0]) == 4


def test_accumulate_hands_over_batches() -> None:
    moments = [datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC) for n in range(5)]
    rows = [{"t": moment, "v": float(n), "w": None} for n, moment in enumerate(moments)]
    outcome = results("accumulate", rows, columns=["t", "v", "w"], size=2)
    assert outcome[0] is outcome[2] is outcome[4] is None
    assert outcome[3] == {"t": [m.timestamp() for m in moments[2:4]], "v": [2.0, 3.0], "w": [None, None]}
    assert results("accumulate", column([1, 2, 3]), columns=["v"], size=3)[-1] == [1.0, 2.0, 3.0]


@given(st.lists(st.none() | st.integers(0, 8) | st.text(max_size=2), min_size=1, max_size=60))
def test_distinct_counts_what_a_set_counts(values: list[Any]) -> None:
    outcome = results("distinct", column(values), column="v")
    assert outcome == [len({v for v in values[: n + 1] if v is not None}) for n in range(len(values))]


@pytest.mark.parametrize("bits", [6, 10, 12])
def test_the_sketch_is_as_near_as_it_says(bits: int) -> None:
    """Over several streams the root mean square of the relative error is near 1.04 / sqrt(m)."""
    errors = []
    for stream in range(12):
        for count in (50, 3_000):
            values = [f"{stream}-{count}-{n}" for n in range(count)]
            outcome = results("distinct_sketch", column([*values, *values[: count // 2]]), column="v", bits=bits)
            errors.append(outcome[-1] / count - 1)
    assert math.sqrt(np.mean(np.square(errors))) < 1.5 * 1.04 / math.sqrt(2**bits)


def test_the_sketch_does_not_count_twice() -> None:
    outcome = results("distinct_sketch", column(["a", "b", "a", "b", None]), column="v")
    assert outcome[1] == outcome[2] == outcome[3] == outcome[4]
    assert round(outcome[1]) == 2


def test_the_second_moment_is_right_on_average() -> None:
    """The estimate is unbiased: over many seeds its mean comes near the true sum of squares."""
    draw = random.Random(5)
    values = [draw.choice("aaaabbbcdefgh") for _ in range(120)]
    truth = sum(count**2 for count in Counter(values).values())
    outcome = [results("second_moment", column(values), column="v", places=10, seed=s)[-1] for s in range(400)]
    assert np.mean(outcome) == pytest.approx(truth, rel=4 * np.std(outcome) / math.sqrt(len(outcome)) / truth)
    assert np.std(outcome) > 0
    # With a place for each value there is nothing to draw: n (2 c - 1) averaged over all places is exact.
    assert results("second_moment", column(values), column="v", places=200)[-1] == pytest.approx(truth)


@given(st.lists(maybe, min_size=1, max_size=30), st.integers(2, 8), st.integers(1, 5))
def test_sliding_regression_is_numpys_line(values: list[float | None], train: int, ahead: int) -> None:
    outcome = results("sliding_regression", column(values), column="v", train=train, ahead=ahead)
    there: list[float] = []
    for value, result in zip(values, outcome, strict=True):
        if value is None:
            assert result is None
            continue
        there.append(value)
        if len(there) < train:
            assert result is None
        else:
            slope, start = np.polyfit(range(train), there[-train:], 1)
            assert result == pytest.approx([start + slope * x for x in range(train, train + ahead)], abs=1e-4)


@given(st.lists(st.none() | st.integers(-5, 5), min_size=1, max_size=40), st.integers(1, 5))
def test_top_k_passes_the_highest_so_far(values: list[int | None], size: int) -> None:
    outcome = results("top_k", column(values), column="v", size=size)
    for place, value in enumerate(values):
        before = [v for v in values[:place] if v is not None]
        rank = None if value is None else 1 + sum(v >= value for v in before)
        assert outcome[place] == (rank if rank is not None and rank <= size else None)


def test_kalman_and_moving_average_still_tell_numbers() -> None:
    assert results("moving_average", column([1, 3, None, 5]), column="v", size=2) == [1, 2, None, 4]
    assert results("count", column([1, 3])) == [1.0, 2.0]


def test_the_row_of_a_task_with_several_columns() -> None:
    options: Any = BY_NAME["join_fields"].config.model_validate({"key": ["id"], "columns": "a double, `b c` string"})
    row = row_with_result(options, ["id", "Field", "value"], "n", "t", "e")
    assert row.condition == "t is not null"
    assert row.columns == (
        ("id", "`id`"),
        ("a", "cast(from_json(t, '`a` double, `b c` string').`a` as double)"),
        ("b c", "cast(from_json(t, '`a` double, `b c` string').`b c` as string)"),
    )


def test_columns_that_are_filled_keep_what_they_have() -> None:
    options: Any = BY_NAME["interpolate"].config.model_validate({"key": ["id"], "columns": ["v"]})
    row = row_with_result(options, ["id", "v"], "n", "t", "e")
    assert (row.condition, row.columns) == ("not (e)", (("id", "`id`"), ("v", "cast(coalesce(n, `v`) as double)")))
