"""A task of the author's own with a memory: what it is given, what becomes of its results, and of what it raises."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.runtime.host import ERRORS, RESULTS, TEXTS, Hosted, stepped
from headgate.tasks.keyed import Together, check_keyed, hosted_step, row_with_result
from headgate.tasks.keyed_python import KeyedPython, keyed_python
from tests.runtime.functions import running_total

NAMES = ("k", "v", "__order")


def hosted(**options: Any) -> Hosted:
    config: dict[str, Any] = {
        "key": ("k",),
        "function": "tests.runtime.functions.running_total",
        "columns": "sum double",
    }
    step = hosted_step(KeyedPython.model_validate(config | options), NAMES)
    assert isinstance(step, Together)
    return Hosted("life", "way", step)


def told(batches: list[list[float | None]], task: Hosted) -> tuple[list[Any], Any]:
    stored, found = None, []
    for batch in batches:
        rows = [("a", value, place) for place, value in enumerate(batch)]
        stored, results = stepped(stored, rows[::-1], 2, lambda _: (task,), None, NAMES[:2])
        found += results
    return found, pickle.loads(stored)["life"].get("way") if stored else None


@given(st.lists(st.lists(st.integers(-100, 100), min_size=1), min_size=1))
def test_it_remembers_from_batch_to_batch_and_gets_rows_in_order(batches: list[list[int]]) -> None:
    found, state = told([[float(v) for v in batch] for batch in batches], hosted())
    values = [v for batch in batches for v in batch]
    assert [row[RESULTS] for row in found] == [[float(sum(values[: n + 1]))] for n in range(len(values))]
    assert state == [sum(values)]


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1), min_size=1))
def test_a_row_that_it_raises_for_is_named_and_changes_nothing(batches: list[list[int | None]]) -> None:
    found, state = told([[None if v is None else float(v) for v in batch] for batch in batches], hosted())
    values = [v for batch in batches for v in batch]
    for row, value in zip(found, values, strict=True):
        assert (row[ERRORS] is None) == (value is not None)
    assert (state or [0]) == [sum(v for v in values if v is not None)]
    assert [row[RESULTS][0] for row in found if row[ERRORS] is None][-1:] in ([], [state[0] if state else None])


def test_several_columns_are_an_object() -> None:
    found, _ = told([[1.0, 2.0]], hosted(columns="sum double, twice double", options={"several": True}))
    assert [row[TEXTS] for row in found] == [['{"sum":1.0,"twice":2.0}'], ['{"sum":3.0,"twice":6.0}']]


def test_texts_pass_as_they_are() -> None:
    options = KeyedPython(key=("k",), function="m.f", columns="word string")
    work = keyed_python(options, NAMES, lambda state, columns: (state, [*columns["k"]]))
    assert work(None, [("a", 1, 0)]) == (None, ["a"])


def test_a_function_that_forgets_rows_is_told_so() -> None:
    options = KeyedPython(key=("k",), function="m.f", columns="n bigint")
    with pytest.raises(ValueError, match=r"m\.f returned 0 results for 1 rows"):
        keyed_python(options, NAMES, lambda state, _: (state, []))(None, [("a", 1, 0)])


def test_only_rows_with_results_pass_if_so_asked() -> None:
    options = KeyedPython(key=("k",), function="m.f", columns="n bigint", results_only=True)
    assert row_with_result(options, ["k"], "n", "t", "e").condition == "n is not null"


def test_a_function_that_is_not_there_is_told_before_it_runs() -> None:
    with pytest.raises(InputError, match="no_such_function"):
        check_keyed(KeyedPython(key=("k",), function="tests.runtime.functions.no_such_function", columns="n bigint"))


def test_the_function_of_the_tests() -> None:
    assert running_total(None, {"v": (1.0, 2.0)}) == ([3.0], [1.0, 3.0])
