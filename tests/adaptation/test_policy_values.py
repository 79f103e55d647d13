"""Actions, memories and capabilities as values: what is written down comes back the same."""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.adaptation.actions import KINDS, Action, SetPartitions, SwitchAlternate, action_of, document_of, kind_of
from headgate.adaptation.policy import Capabilities, Memory
from headgate.errors import BadValue
from headgate.forecasting.guard import Guarded
from headgate.forecasting.methods import recipe_of
from headgate.forecasting.online import Settings, start
from headgate.model.names import Signature

texts = st.text(max_size=20)


def _action(kind: str, draw: Any) -> Action:
    numbers = {"cores", "partitions"}
    rates = {"seconds", "rows_per_s"}
    fields = {}
    for each in dataclasses.fields(KINDS[kind]):
        of = st.integers(0, 2**40) if each.name in numbers else st.floats(0, 1e9) if each.name in rates else texts
        fields[each.name] = draw(st.none() | of if "None" in str(each.type) else of)
    return KINDS[kind](**fields)


@given(st.sampled_from(list(KINDS)), st.data())
def test_an_action_comes_back_from_its_document(kind: str, data: Any) -> None:
    action = _action(kind, data.draw)
    assert action_of(json.loads(json.dumps(document_of(action)))) == action
    assert kind_of(action) == kind


def test_what_is_no_action_is_named() -> None:
    with pytest.raises(BadValue, match="there is no action 'paus'") as caught:
        action_of({"action": "paus"})
    assert "did you mean 'pause'?" in caught.value.sentence
    with pytest.raises(BadValue, match="'pause' has other fields"):
        action_of({"action": "pause", "task": "a"})


kept = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(lambda each: deque(each, maxlen=4))
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8).filter(lambda key: not key.startswith("$")), kept, max_size=4))
def test_a_memory_survives_json(values: dict[str, Any]) -> None:
    memory = Memory("ce", 1, values)
    again = Memory.of(json.loads(json.dumps(memory.document(), allow_nan=False)), "ce", 1)
    assert again == memory


def test_a_memory_of_another_policy_or_version_is_not_read() -> None:
    document = Memory("ce", 1, {"turn": 3}).document()
    assert Memory.of(document, "ce", 2) is None
    assert Memory.of(document, "sh", 1) is None


@pytest.mark.parametrize("name", ["ensemble", "holt", "holt-winters", "kalman", "ar", "naive", "seasonal-naive"])
def test_a_forecaster_goes_on_from_json_as_if_nothing_had_happened(name: str) -> None:
    recipe, settings = recipe_of(name, 12), Settings(horizon=6)
    one = Guarded(lambda: start(recipe, 2, settings), settings)
    rng = np.random.default_rng(7)
    rates = np.abs(rng.normal(20, 5, (2, 90)).cumsum(axis=1))
    one.update(rates[:, :60])
    one.forecast(6)
    document = json.loads(json.dumps(Memory("p", 1, {"rates": one}).document(), allow_nan=False))
    read = Memory.of(document, "p", 1)
    assert read is not None
    other: Guarded = read.values["rates"]
    for column in rates[:, 60:].T:
        for each in (one, other):
            each.update(column)
        assert np.array_equal(one.forecast(6).quantiles, other.forecast(6).quantiles)
        assert one.failing.tolist() == other.failing.tolist()


@pytest.mark.parametrize(
    "document",
    [
        {"$object": ["os:system", {}]},
        {"$object": ["headgate.errors:nearest", {}]},
        {"$object": ["headgate.nowhere:Thing", {}]},
        {"$array": ["<f8", [2], "AAAA"]},
        {"$surprise": 1},
    ],
)
def test_a_damaged_memory_is_named(document: dict[str, Any]) -> None:
    with pytest.raises(BadValue, match="a damaged memory"):
        Memory.of({"policy": "ce", "version": 1, "values": {"a": document}}, "ce", 1)


def test_capabilities_say_what_is_accepted() -> None:
    hot = Signature("hot")
    spark = Capabilities(("spark",), frozenset({"switch_alternate", "set_partitions"}), switchable=frozenset({hot}))
    assert spark.accepts(SwitchAlternate(hot, "quick"))
    assert not spark.accepts(SwitchAlternate(Signature("window"), "quick"))
    assert spark.accepts(SetPartitions(Signature("window"), 4))
    assert not dataclasses.replace(spark, kinds=frozenset()).accepts(SetPartitions(hot, 4))
