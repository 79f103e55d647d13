"""Every format holds every dataflow exactly, and reading does not depend on how the same thing was put."""

from __future__ import annotations

import json
import random
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.documents import FORMATS, parse, write
from headgate.documents.document import to_document
from headgate.model.dataflow import Dataflow
from headgate.tasks.registry import default_registry
from tests.strategies import dataflows, documents

REGISTRY = default_registry()


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=100)
@given(dataflow=dataflows)
def test_what_is_written_reads_back_as_the_same_value(form: str, dataflow: Dataflow) -> None:
    text = write(dataflow, form, REGISTRY)
    again = parse(text, form, REGISTRY).dataflow
    assert again == dataflow
    assert write(again, form, REGISTRY) == text
    assert parse(text.encode("utf-8"), form, REGISTRY).dataflow == dataflow


@settings(max_examples=40)
@given(dataflow=dataflows, chain=st.sampled_from(list(permutations(FORMATS))))
def test_a_dataflow_survives_a_journey_through_all_formats(dataflow: Dataflow, chain: tuple[str, ...]) -> None:
    travelled = dataflow
    for form in chain:
        travelled = parse(write(travelled, form, REGISTRY), form, REGISTRY).dataflow
    assert travelled == dataflow
    assert hash(travelled) == hash(dataflow)


@settings(max_examples=100)
@given(document=documents(), seed=st.integers(0, 2**32))
def test_the_order_of_keys_and_how_numbers_are_written_mean_nothing(document: dict[str, Any], seed: int) -> None:
    dataflow = parse(json.dumps(document), "json").dataflow
    other = _shuffled(document, random.Random(seed))
    assert parse(json.dumps(other), "json").dataflow == dataflow


@settings(max_examples=100)
@given(document=documents())
def test_defaults_written_out_or_left_out_mean_the_same(document: dict[str, Any]) -> None:
    dataflow = parse(json.dumps(document), "json").dataflow
    assert parse(json.dumps(_written_out(document)), "json").dataflow == dataflow
    assert parse(json.dumps(to_document(dataflow)), "json").dataflow == dataflow


def test_one_and_one_point_zero_are_equal_and_true_is_neither() -> None:
    def flow(value: str) -> Dataflow:
        return parse(f"tasks: [{{id: a, type: opaque, config: {{options: {{x: {value}}}}}}}]", "yaml").dataflow

    assert flow("1") == flow("1.0") == flow("1e0") == flow("0x1")
    assert len({flow("1"), flow("1.0"), flow("true"), flow('"1"'), flow("1.5")}) == 4


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("cost", ["333.3333333333333", "123456789012345678", "0.1234567890123456789", "1e-9"])
def test_break_even_costs_may_have_any_number_of_digits(form: str, cost: str) -> None:
    """Computed ones have many: DYN's are a rate times a constant."""
    level = f"{{break_even_at_best_per_h: {cost}, break_even_at_worst_per_h: 0}}"
    flow = parse(f"service_level: {level}\ntasks: [{{id: a, type: opaque}}]", "yaml").dataflow
    best = flow.service_level.break_even_at_best_per_h
    assert best is not None
    assert float(best) == float(cost)
    assert parse(write(flow, form), form).dataflow == flow


def test_the_order_of_a_joins_sides_is_kept_by_every_format() -> None:
    text = """
    tasks:
    - {id: a, type: read_files, config: {path: a, columns: "k string, t timestamp"}}
    - {id: b, type: read_files, config: {path: b, columns: "k string, t timestamp"}}
    - {id: j, type: join, config: {on: [k], time: [t, t], within: 1s}, inputs: [b, a]}
    """
    dataflow = parse(text, "yaml").dataflow
    assert [(stream.source, stream.side) for stream in dataflow.streams] == [("b", 0), ("a", 1)]
    for form in FORMATS:
        assert parse(write(dataflow, form), form).dataflow == dataflow


def _shuffled(value: Any, draw: random.Random) -> Any:
    """The same document with its mappings in another order, and whole numbers with a point."""
    if isinstance(value, dict):
        items = [(key, item if key in ("version", "seed") else _shuffled(item, draw)) for key, item in value.items()]
        draw.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [_shuffled(item, draw) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 and draw.random() < 0.5:
        return float(value)
    return value


def _written_out(document: dict[str, Any]) -> dict[str, Any]:
    """The same document with every default in it."""
    level: dict[str, Any] = {"throughput_min": 0.8, "throughput_tolerance": 0.05, "latency_max_s": None}
    head: dict[str, Any] = {"version": 1, "owner": "nobody", "description": "", "share": "anyone"}
    whole = head | document | {"service_level": level | document.get("service_level", {})}
    return whole | {"tasks": [_task_written_out(task) for task in document["tasks"]]}


def _task_written_out(task: dict[str, Any]) -> dict[str, Any]:
    short: dict[str, Any] = {"config": {}, "cost_s": None, "selectivity": None, "alternates": None}
    feeds = [feed if isinstance(feed, dict) else {"from": feed} for feed in task.get("inputs", [])]
    whole: dict[str, Any] = (
        {"ports": None, "share": None, "on_error": "fail", "time_budget": None}
        | ({} if "alternates" in task else short)
        | task
    )
    whole["inputs"] = [{"to": None, "where": None, "key": None, "feedback": False} | feed for feed in feeds]
    if whole.get("alternates"):
        return whole | {"alternates": [way | {"config": _options_written_out(way)} for way in whole["alternates"]]}
    return whole | {"config": _options_written_out(whole)}


def _options_written_out(work: dict[str, Any]) -> dict[str, Any]:
    model = REGISTRY[work["type"]].config
    return model.model_validate(work.get("config", {})).model_dump(mode="json")
