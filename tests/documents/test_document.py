"""The JSON Schema that editors use agrees with what is accepted."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from headgate.documents import parse
from headgate.documents.document import json_schema, number, to_document
from headgate.tasks.reference import options_of
from headgate.tasks.registry import default_registry
from tests.samples import DATAFLOW, DOCUMENT
from tests.strategies import documents

REGISTRY = default_registry()
SCHEMA = json_schema(REGISTRY)
VALIDATOR = Draft202012Validator(SCHEMA)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_every_reference_leads_somewhere() -> None:
    def references(part: Any) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
            return own + [found for item in part.values() for found in references(item)]
        return [found for item in part for found in references(item)] if isinstance(part, list) else []

    for reference in references(SCHEMA):
        assert reference.removeprefix("#/$defs/") in SCHEMA["$defs"]


@settings(max_examples=80)
@given(documents())
def test_every_valid_document_agrees_with_the_schema(document: dict[str, Any]) -> None:
    VALIDATOR.validate(document)
    VALIDATOR.validate(to_document(parse(json.dumps(document), "json").dataflow))


def test_the_sample_agrees_with_the_schema() -> None:
    VALIDATOR.validate(DOCUMENT)
    VALIDATOR.validate(to_document(DATAFLOW))


@pytest.mark.parametrize("kind", REGISTRY.values(), ids=lambda kind: kind.name)
def test_options_of_every_type_are_in_the_schema(kind: Any) -> None:
    part = SCHEMA["$defs"][f"config.{kind.name}"]
    assert set(part["properties"]) == {option.name for option in options_of(kind)} if options_of(kind) else True
    assert part["description"] == kind.summary


BROKEN: list[tuple[list[str | int], Any]] = [
    (["tasks", 0, "config", "pth"], "x"),
    (["tasks", 0, "config", "path"], 3),
    (["tasks", 2, "config", "where"], None),
    (["tasks", 3, "alternates", 1, "config", "size"], 0),
    (["tasks", 0, "id"], "a b"),
    (["nmae"], "x"),
    (["version"], 2),
    (["service_level", "throughput_min"], 2),
    (["tasks", 2, "inputs", 0, "frm"], "x"),
    (["tasks", 5, "ports", "inputs", 1, "gather"], "mix"),
]


@pytest.mark.parametrize(("path", "value"), BROKEN, ids=str)
def test_slips_are_underlined(path: list[str | int], value: Any) -> None:
    document = copy.deepcopy(DOCUMENT)
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    assert not VALIDATOR.is_valid(document)


def test_numbers_are_written_as_short_as_they_can_be() -> None:
    assert [number(value) for value in (1.0, 0.5, Decimal("2.50"), Decimal("3"), 7, 1e300)] == [
        1,
        0.5,
        2.5,
        3,
        7,
        int(1e300),
    ]
    assert number(10**400) == 10**400
