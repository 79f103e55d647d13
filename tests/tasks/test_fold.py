"""Tasks that fold a function of the dataflow's author: what the function is given, and what becomes of its answer."""

from __future__ import annotations

import pickle
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.model.work import KeyedWork
from headgate.runtime.keyed.host import Results, Values, hosting, stepped
from headgate.tasks.keyed_base import step_of
from headgate.tasks.keyed_results import row_with_result
from headgate.tasks.registry import default_registry
from headgate.tasks.user_defined import Fold

FOLD = default_registry()["fold"]
assert isinstance(FOLD.work, KeyedWork)
WORK = FOLD.work


def spent(state: Any, row: dict[str, Any], tax: float = 0.0) -> tuple[Any, dict[str, Any] | None]:
    """What a customer has spent, from the second order on."""
    total, orders = state or (0.0, 0)
    state = (total + row["price"] * (1 + tax), orders + 1)
    return state, None if orders == 0 else {"total": state[0], "orders": state[1]}


def as_wanted(state: Any, row: dict[str, Any]) -> tuple[Any, dict[str, Any] | None]:
    return state, {"it": row["it"]}


def total(state: list[float] | None, row: dict[str, Any]) -> tuple[list[float], dict[str, Any]]:
    """The sum of a key's values so far; changes what it remembers in place, and raises where there is no value."""
    state = [0.0] if state is None else state
    state.append(0.0)  # what a function that raises has done by then must not be remembered
    state[0] += row["v"]
    state.pop()
    return state, {"sum": state[0]}


def totals(state: list[float] | None, columns: dict[str, list[Any]]) -> tuple[list[float], list[dict[str, Any]]]:
    """The same, of all rows at once."""
    results = []
    for value in columns["v"]:
        state, result = total(state, {"v": value})
        results.append(result)
    return state or [0.0], results


def forgetful(state: Any, columns: dict[str, list[Any]]) -> tuple[Any, list[Any]]:
    return state, [None] * (len(columns["v"]) - 1)


def fold(
    function: str, takes: tuple[str, ...], columns: str, mode: Literal["row", "rows"] = "row", **options: Any
) -> Fold:
    path = f"tests.tasks.test_fold.{function}"
    return Fold(function=path, key=("k",), takes=takes, columns=columns, mode=mode, options=options)


MODES = [fold("total", ("v",), "sum double"), fold("totals", ("v",), "sum double", "rows")]


def folded(batches: list[list[Any]], options: Fold) -> tuple[list[float | None], dict[int, str], Any]:
    """Results and errors by row, and what is remembered, after batches of one key."""
    does = hosting([("life", "way", WORK, options)], ["k", "v"])
    stored, results = None, Results(1)
    for batch in batches:
        values = Values([pa.array(batch, pa.float64())], len(batch))
        stored = stepped(stored, values, (0, len(batch)), does.tasks, results)
    remembered = pickle.loads(stored)["life"].get("way") if stored else None
    return results.numbers[0], {row: text for (row, _), text in results.errors.items()}, remembered


@pytest.mark.parametrize("options", MODES)
@given(batches=st.lists(st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1), min_size=1))
def test_a_row_that_it_raises_for_is_named_and_nothing_of_it_is_remembered(
    options: Fold, batches: list[list[int | None]]
) -> None:
    results, errors, remembered = folded(batches, options)
    values = [value for batch in batches for value in batch]
    assert set(errors) == {at for at, value in enumerate(values) if value is None}
    sums = [float(sum(v for v in values[: at + 1] if v is not None)) for at in range(len(values))]
    assert results == [None if value is None else so_far for value, so_far in zip(values, sums, strict=True)]
    assert (remembered or [0.0]) == [sums[-1]]


def test_a_function_that_leaves_rows_out_is_told_so() -> None:
    _, errors, _ = folded([[1.0]], fold("forgetful", ("v",), "sum double", "rows"))
    assert "the function returned 0 results for 1 rows" in errors[0]


def test_several_columns_are_an_object_and_none_is_no_row() -> None:
    options = fold("spent", ("price",), "total double, orders bigint", tax=0.5)
    step = step_of(FOLD, options, ["k", "price"])
    state, first = step(None, ["a", 10.0])
    state, second = step(state, ["a", 4.0])
    assert (first, second) == (None, '{"total":21.0,"orders":2}')
    row = row_with_result(options, ["k", "price"], "n", "t", "e")
    assert row.condition == "t is not null"
    assert [name for name, _ in row.columns or ()] == ["k", "price", "total", "orders"]
    assert "from_json(t, '`total` double, `orders` bigint').`orders`" in dict(row.columns or ())["orders"]


@pytest.mark.parametrize(
    ("columns", "value", "result", "expression"),
    [
        ("it bigint", 3, 3.0, "cast(n as bigint)"),
        ("it string", "x", "x", "cast(t as string)"),
        ("it int", 3, "3", "cast(t as int)"),
        ("it boolean", True, "True", "cast(t as boolean)"),
        ("it array<int>", [1, 2], "[1,2]", "cast(from_json(t, 'array<int>') as array<int>)"),
        ("it bigint", None, None, "cast(n as bigint)"),
    ],
)
def test_one_column_is_its_value(columns: str, value: Any, result: Any, expression: str) -> None:
    options = fold("as_wanted", ("it",), columns)
    assert step_of(FOLD, options, ["it", "k"])(None, [value, "a"])[1] == result
    assert dict(row_with_result(options, ["k"], "n", "t", "e").columns or ())["it"] == expression


def test_a_function_that_is_not_there_is_told_of_before_anything_runs() -> None:
    with pytest.raises(InputError, match=r"cannot load function 'tests\.tasks\.test_fold\.nowhere'"):
        WORK.check(fold("nowhere", ("price",), "total double"))
