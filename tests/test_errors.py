"""Errors and faults: one line each, whatever is in them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import (
    Fault,
    HeadgateError,
    InputError,
    InvalidDataflow,
    NameFinder,
    Place,
    PluginError,
    nearest,
    printable,
    shorten,
)

any_text = st.text(st.characters(codec=None))


@given(any_text, any_text, any_text, any_text)
def test_a_fault_is_one_printable_line(message: str, file: str, task: str, near: str) -> None:
    fault = Fault("X", message, Place(file, 3, 4), task, message, near)
    assert str(fault).isprintable()
    json.dumps(fault.as_dict(), ensure_ascii=False).encode("utf-8")


def test_a_fault_reads_well() -> None:
    whole = Fault("X", "m", Place("f", 1, 2), "t", "e", "n")
    assert str(whole) == "f:1:2: task 't': m; expected e; did you mean 'n'?"
    assert str(Fault("X", "m")) == "<dataflow>: m"
    assert str(whole.at(Place("g"))).startswith("g: task")


def test_faults_stand_in_the_order_of_their_places() -> None:
    places = [Place("b", 1), Place("a", 10), Place("a", 9, 2), Place("a", 9, 1), Place("a"), Place()]
    error = InvalidDataflow(Fault("X", "m", place) for place in places)
    assert [str(fault.place) for fault in error.faults] == ["<dataflow>", "a", "a:9:1", "a:9:2", "a:10", "b:1"]
    assert (error.condition, error.parameters) == ("INVALID_DATAFLOW", {"faults": 6})


def test_errors_are_told_apart_by_who_can_mend_them() -> None:
    assert issubclass(InvalidDataflow, InputError)
    assert issubclass(InputError, HeadgateError)
    assert issubclass(PluginError, HeadgateError)
    error = InputError("CONDITION", "a sentence", {"a": 1})
    assert (error.condition, error.message, error.parameters, str(error)) == (
        "CONDITION",
        "a sentence",
        {"a": 1},
        "a sentence",
    )


@given(any_text)
def test_printable_text_is_kept_and_the_rest_escaped(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
    if text.isprintable():
        assert printable(text) == text


class _Broken:
    def __repr__(self) -> str:
        raise RuntimeError


@given(
    st.recursive(
        st.one_of(any_text, st.integers(), st.binary()),
        lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
    )
)
def test_any_value_is_shown_within_the_limit(value: object) -> None:
    assert len(shorten(value)) <= 60
    assert len(shorten(value, 200)) <= 200


def test_values_that_cannot_be_shown_are_told_of() -> None:
    assert shorten(10**5000) == "a int that cannot be shown"
    assert shorten(_Broken()) == "a _Broken that cannot be shown"
    endless: list[object] = []
    endless += [endless] * 100
    assert shorten(endless).startswith("[[[")
    assert shorten([1, 2, 3, "four"]) == "[1, 2, 3, 'four']"
    assert shorten({"a": [1]}) == "{'a': [1]}"


@pytest.mark.parametrize(
    ("name", "valid", "expected"),
    [
        ("fliter", ["filter", "select"], "filter"),
        ("FILTER", ["filter"], "filter"),
        ("filter", ["Filter"], "Filter"),
        ("zzz", ["filter"], None),
        ("", ["filter"], None),
        ("x" * 201, ["x" * 200], None),
        ("a", [], None),
    ],
)
def test_the_nearest_name(name: str, valid: list[str], expected: str | None) -> None:
    assert nearest(name, valid) == expected


def test_the_search_for_nearest_names_ends_when_it_has_cost_enough() -> None:
    finder = NameFinder(comparisons=5)
    assert finder.nearest("fliter", ["filter", "select"]) == "filter"
    assert finder.nearest("fliter", ["filter", "select"]) == "filter"
    assert finder.nearest("fliter", ["filter", "select"]) is None
