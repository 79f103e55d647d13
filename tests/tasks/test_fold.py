"""Tasks that fold a function of the dataflow's author: what the function is given, and what becomes of its answer."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.errors import InputError
from headgate.tasks.keyed import check_keyed, row_with_result, step_of
from headgate.tasks.user_defined import Fold


def spent(state: Any, row: dict[str, Any], tax: float = 0.0) -> tuple[Any, dict[str, Any] | None]:
    """What a customer has spent, from the second order on."""
    total, orders = state or (0.0, 0)
    state = (total + row["price"] * (1 + tax), orders + 1)
    return state, None if orders == 0 else {"total": state[0], "orders": state[1]}


def as_wanted(state: Any, row: dict[str, Any]) -> tuple[Any, dict[str, Any] | None]:
    return state, {"it": row["it"]}


def fold(function: str, takes: tuple[str, ...], columns: str, **options: Any) -> Fold:
    return Fold(function=f"tests.tasks.test_fold.{function}", key=("k",), takes=takes, columns=columns, options=options)


def test_several_columns_are_an_object_and_none_is_no_row() -> None:
    options = fold("spent", ("price",), "total double, orders bigint", tax=0.5)
    step = step_of(options, ["k", "price"])
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
    assert step_of(options, ["it", "k"])(None, [value, "a"])[1] == result
    assert dict(row_with_result(options, ["k"], "n", "t", "e").columns or ())["it"] == expression


def test_a_function_that_is_not_there_is_told_of_before_anything_runs() -> None:
    with pytest.raises(InputError, match=r"cannot load function 'tests\.tasks\.test_fold\.nowhere'"):
        check_keyed(fold("nowhere", ("price",), "total double"))
