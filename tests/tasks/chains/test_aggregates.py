"""Aggregates at their edges: sketches within their error, bounds, sums that do not fit, texts that are refused."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.errors import InputError
from headgate.tasks.chains.aggregate_text import AggregateCall, split
from headgate.tasks.chains.aggregates import bags
from headgate.tasks.chains.aggregates.base import Aggregate
from headgate.tasks.chains.aggregates.catalogue import aggregate_of
from headgate.tasks.chains.grouping import Groups


def merged(aggregate: Aggregate, parts: list[list[Any]], kind: pa.DataType) -> Any:
    """The result of parts of one group, each begun by itself."""
    states = []
    for part in parts:
        groups = Groups(np.arange(len(part)), np.zeros(1, np.int64))
        states.append(aggregate.begin([pa.array(part, kind)], np.arange(len(part)), groups))
    columns = [pa.concat_arrays(column) for column in zip(*states, strict=True)]
    one = Groups(np.arange(len(parts)), np.zeros(1, np.int64))
    return aggregate.finish(aggregate.merge(columns, one)).to_pylist()[0]


@pytest.mark.parametrize("count", [0, 1, 5, 300, 1_500, 20_000])
@pytest.mark.parametrize("error", [0.05, 0.01])
def test_an_approximate_distinct_count_is_within_its_error(count: int, error: float) -> None:
    texts = [f"user {number}" for number in range(count)]
    parts: list[list[Any]] = [[*texts[: count // 2], None], [None, *texts[count // 3 :]]]
    estimate = merged(
        aggregate_of(AggregateCall("approx_count_distinct", (0,), (error,)), [pa.string()]), parts, pa.string()
    )
    assert abs(estimate - count) <= 4 * error * count


def test_an_approximate_percentile_of_many_values_is_near_the_exact_one() -> None:
    call = AggregateCall("approx_percentile", (0,), ((0.1, 0.5, 0.99), 200.0))
    values = list(range(10_000))
    random.Random(7).shuffle(values)
    parts: list[list[Any]] = [values[start : start + 1_000] for start in range(0, 10_000, 1_000)]
    result = merged(aggregate_of(call, [pa.int64()]), parts, pa.int64())
    assert result == pytest.approx([1_000, 5_000, 9_900], abs=2 * 10_000 / 200)


def test_what_keeps_too_many_values_says_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags, "MAX_VALUES", 10)
    counting = aggregate_of(AggregateCall("count", (0,), distinct=True), [pa.int64()])
    assert merged(counting, [list(range(10)), list(range(10))], pa.int64()) == 10
    with pytest.raises(ValueError, match=r"keeps 11 values of one group, at most are 10; use approx_count_distinct"):
        merged(counting, [list(range(10)), [10]], pa.int64())


def test_sums_that_do_not_fit_raise() -> None:
    whole = aggregate_of(AggregateCall("sum", (0,)), [pa.int64()])
    most = (1 << 63) - 1
    assert merged(whole, [[most, -5], [5]], pa.int64()) == most
    with pytest.raises(OverflowError, match="does not fit into bigint"):
        merged(whole, [[most], [1]], pa.int64())
    wide = aggregate_of(AggregateCall("sum", (0,)), [pa.decimal128(38, 0)])
    with pytest.raises(OverflowError, match="does not fit into decimal128"):
        merged(wide, [[Decimal(10**38 - 1)], [Decimal(10**38 - 1)]], pa.decimal128(38, 0))


def test_variance_far_from_zero() -> None:
    spread = aggregate_of(AggregateCall("var_pop", (0,)), [pa.float64()])
    values = [1e9 + number for number in (4.0, 7.0, 13.0, 16.0)]
    assert merged(spread, [values[:1], values[1:], [None]], pa.float64()) == pytest.approx(22.5, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a + 1", "'a . 1' is no aggregate; take an aggregate such as avg"),
        ("listagg(a)", "aggregate 'listagg' cannot be continued from row to row; take one of any, "),
        ("sum(max(a))", "'max' within 'sum': an aggregate of an aggregate; take two tasks"),
        ("percentile(a, b)", "an argument of 'percentile' is 'b'; take a number"),
        ("percentile(a)", "'percentile' with 1 arguments; take 2"),
        ("stddev(distinct a)", "'stddev' of distinct values is not computed; take it without DISTINCT"),
        ("count(distinct *)", "'count' of what"),
        ("sum(a) over (partition by b)", "'sum' is used over rows, not over groups"),
    ],
)
def test_expressions_that_are_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        split({"x": text})


@pytest.mark.parametrize(
    ("function", "kind", "reason"),
    [
        ("max", pa.list_(pa.int32()), "'max' of list.* is not computed; take a field of it"),
        ("sum", pa.bool_(), "'sum' of bool is not computed; cast it to a number"),
        ("approx_percentile", pa.string(), "'approx_percentile' of string is not computed"),
    ],
)
def test_types_that_are_refused(function: str, kind: pa.DataType, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        aggregate_of(AggregateCall(function, (0,), (0.5,)), [kind])


@pytest.mark.parametrize(
    ("text", "outer"),
    [
        ("concat('max(a)', max(a))", "concat('max(a)', `__agg_0`)"),
        ("max(a) filter (where b > 1) + 1", "`__agg_0` + 1"),
        ("first(a) filter (where b > 1)", "`__agg_0`.value"),
        ("transform(collect_list(a), x -> x + 1)", "transform(`__agg_0`, x -> x + 1)"),
        ("max(a like any ('x%'))", "`__agg_0`"),
        ("/* max(b) */ max(a)", "/* max(b) */ `__agg_0`"),
    ],
)
def test_what_stays_outside(text: str, outer: str) -> None:
    assert split({"x": text}).outer == (("x", outer),)
