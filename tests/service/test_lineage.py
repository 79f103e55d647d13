"""Lineage: where columns come from, and who would be hurt, held against what a check says without the column."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.documents import parse
from headgate.errors import InputError, InvalidDataflow
from headgate.service.lineage.answer import LineageAnswer, lineage_answer
from headgate.service.lineage.lineage import dataflow_lineage
from headgate.service.load import load
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry

REGISTRY = default_registry()
CITY = Path(__file__).parents[2] / "examples" / "city"
FILES = ("alarms.yaml", "map.yaml", "archive.json", "quality.py")
COLUMNS = "sensor string, district string, t timestamp, temperature double, humidity double, dust double"


@pytest.fixture(scope="module")
def city() -> SharedSet:
    shared = SharedSet(REGISTRY)
    for name in FILES:
        shared, _ = shared.submit(load(CITY / name, REGISTRY).signed)
    return shared


def asked(city: SharedSet, of: str, owner: str | None = None) -> LineageAnswer:
    return lineage_answer(city.running, of, REGISTRY, lambda other: owner is None or other == owner)


def test_a_column_comes_from_what_it_is_computed_of(city: SharedSet) -> None:
    (smoothed,) = asked(city, "alarms.page.smoothed").columns
    assert smoothed.sources == ("read.value",)
    assert smoothed.paths == (("read.value", "parse.temperature", "smooth.smoothed", "page.smoothed"),)
    assert "smooth key (once.sensor)" in smoothed.decided_by
    assert "heat where (smooth.smoothed)" in smoothed.decided_by
    by_name = {one.column: one for one in asked(city, "map").columns}
    assert by_name["sensors"].paths[0][1] == "decode.sensor"
    assert by_name["window_start"].paths[0][1] == "decode.t"
    assert by_name["dust"].type is None or by_name["dust"].type == "double"
    joined = {one.column: one for one in asked(city, "quality.report").columns}
    assert joined["by"].sources == ("repairs.by",)
    assert joined["sensor"].sources == ("readings.value",)
    (alarm,) = asked(city, "alarms.page.alarm").columns
    assert set(alarm.sources) == {"dust.alarm", "heat.alarm"}, "constants begin where they are made"


@pytest.mark.parametrize("column", ["sensor", "district", "t", "temperature", "humidity", "dust"])
def test_who_is_hurt_is_who_could_not_be_checked_without_the_column(city: SharedSet, column: str) -> None:
    """The judge is the checker: it refuses a dataflow whose options read a column that is not there."""
    hurt = asked(city, f"alarms.parse.{column}").hurt
    without = ", ".join(one for one in COLUMNS.split(", ") if not one.startswith(f"{column} "))
    for name in ("alarms.yaml", "map.yaml", "archive.json"):
        flow = load(CITY / name, REGISTRY).dataflow.name
        text = (CITY / name).read_text(encoding="utf-8").replace(COLUMNS, without)
        try:
            parse(text, name.rpartition(".")[2], REGISTRY)
            refused = set[str]()
        except InvalidDataflow as error:
            refused = {str(fault.task) for fault in error.faults}
        read = {one.task for one in hurt if one.dataflow == flow and one.how.startswith("reads it")}
        assert refused <= read, flow
        assert bool(refused) == bool(read), flow
    assert any(one.how == "delivers it" for one in hurt)


def test_what_others_do_with_a_column_is_theirs(city: SharedSet) -> None:
    hurt = asked(city, "alarms.parse.dust", "environment").hurt
    foreign = [one for one in hurt if one.owner != "environment"]
    assert {one.dataflow for one in foreign} == {"archive", "map"}
    assert all(one.task == one.column == "" for one in foreign)


@pytest.mark.parametrize(
    ("of", "condition"),
    [("alrams", "UNKNOWN_DATAFLOW"), ("alarms.smoth", "UNKNOWN_TASK"), ("alarms.page.smothed", "UNKNOWN_COLUMN")],
)
def test_a_name_that_is_not_there_is_refused_with_the_nearest(city: SharedSet, of: str, condition: str) -> None:
    with pytest.raises(InputError, match="did you mean") as refused:
        asked(city, of)
    assert refused.value.condition == condition


def test_every_example_has_a_lineage_without_a_gap() -> None:
    """Every column of every task begins at a source, or is made of nothing, such as a constant."""
    for path in sorted((CITY.parent / "riotbench").rglob("*.yaml")):
        flow = load(path, REGISTRY).dataflow
        lineage = dataflow_lineage(flow, REGISTRY)
        for place in lineage.columns:
            assert lineage.origins(place)
            assert all(before in lineage.columns for step in lineage.columns.values() for before in step.of)
