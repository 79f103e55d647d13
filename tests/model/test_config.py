"""Configurations as values: equality, immutability, canonical text, bounds."""

from __future__ import annotations

import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.config import MAX_DEPTH, MAX_INT_DIGITS, Config, Json, canonical_text
from tests.hostile import deep_list
from tests.strategies import json_values, texts

objects = st.dictionaries(texts, json_values, max_size=4)


@given(objects)
def test_a_config_is_equal_to_one_read_from_its_text(items: dict[str, Json]) -> None:
    config = Config(items)
    again = Config(json.loads(config.text))
    assert again == config
    assert hash(again) == hash(config)
    assert again.text == config.text
    assert Config(config.as_dict()) == config
    assert Config(config) == config


@given(objects)
def test_the_order_of_keys_means_nothing(items: dict[str, Json]) -> None:
    assert Config(dict(reversed(items.items()))) == Config(items)


@given(objects)
def test_a_config_survives_pickling(items: dict[str, Json]) -> None:
    assert pickle.loads(pickle.dumps(Config(items))) == Config(items)


@given(st.integers(-(2**53), 2**53))
def test_whole_numbers_are_equal_however_they_are_written(number: int) -> None:
    assert canonical_text(number) == canonical_text(float(number)) == str(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_their_value(number: float) -> None:
    assert json.loads(canonical_text(number)) == number


def test_what_python_takes_for_equal_is_told_apart() -> None:
    different: list[Json] = [1, True, "1", [1], {"1": 1}, None, 0, False, "", [], {}]
    assert len({canonical_text(value) for value in different}) == len(different)


def test_minus_zero_is_zero() -> None:
    assert canonical_text([-0.0, 0]) == "[0,0]"


def test_a_config_cannot_be_changed_nor_what_is_in_it() -> None:
    inner: dict[str, Json] = {"list": [1, {"b": 2}]}
    config = Config({"a": inner})
    inner["list"] = "changed"
    assert config.text == '{"a":{"list":[1,{"b":2}]}}'
    with pytest.raises(AttributeError, match="immutable"):
        config.text = "{}"
    with pytest.raises(TypeError):
        config["a"] = 1  # type: ignore[index]
    taken = config["a"]
    assert isinstance(taken, Config)
    assert taken["list"] == (1, Config({"b": 2}))
    copy = config.as_dict()
    copy["a"] = None
    assert config["a"] == taken


def test_a_config_is_a_mapping() -> None:
    config = Config({"b": 1, "a": 2})
    assert (len(config), set(config), "a" in config, config.get("c", 3)) == (2, {"a", "b"}, True, 3)
    assert config != {"b": 1, "a": 2}
    assert repr(config) == 'Config({"a":2,"b":1})'
    assert not Config()


BAD: list[object] = [math.inf, math.nan, {1: 2}, {None: 1}, b"bytes", {1, 2}, object(), "\ud800", {"\udfff": 1}, 1j]


@pytest.mark.parametrize(
    "value", [*BAD, 10**MAX_INT_DIGITS, -(10**MAX_INT_DIGITS)], ids=lambda value: type(value).__name__
)
def test_what_json_cannot_carry_is_refused(value: Json) -> None:
    with pytest.raises(ValueError, match=r"finite|key|type|surrogate|digits"):
        Config({"x": [value]})


def test_the_greatest_and_the_deepest_that_is_allowed() -> None:
    assert Config({"x": 10**MAX_INT_DIGITS - 1})["x"] == 10**MAX_INT_DIGITS - 1
    Config({"x": deep_list(MAX_DEPTH - 2)})
    with pytest.raises(ValueError, match=f"deeper than {MAX_DEPTH} levels"):
        Config({"x": deep_list(MAX_DEPTH)})
