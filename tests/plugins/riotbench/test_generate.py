"""The generator: what it makes again is the same, and has the trends, gaps, outliers, skew and faults it promises."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_riotbench.generate import BAD, BEGIN_MS, FIELDS, Generate, bad_kinds, records, sensors, values_of
from headgate_riotbench.parse_senml import ParseSenml, parse_senml

SETS = ("city", "taxi", "fitness")


def parsed(options: Generate, count: int) -> list[dict[str, Any]]:
    outcome = []
    for text in records(options, range(count)):
        record = json.loads(text)
        outcome.append({"bt": record["bt"], **{e["n"]: e.get("v", e.get("sv")) for e in record["e"]}})
    return outcome


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 3_000), max_size=5), st.sampled_from(SETS), st.integers(0, 5))
def test_a_record_follows_from_the_seed_and_its_number(numbers: list[int], data: Any, seed: int) -> None:
    options = Generate(data=data, seed=seed, bad=0.1)
    together = records(options, range(3_001))
    assert records(options, numbers) == [together[number] for number in numbers]
    assert together != records(options.model_copy(update={"seed": seed + 1}), range(3_001))


@pytest.mark.parametrize("data", SETS)
def test_records_are_whole_and_have_their_share_of_gaps(data: Any) -> None:
    rows = parsed(Generate(data=data, missing=0.1, rows_per_s=10), 3_000)
    names = [field.name for field in FIELDS[data]]
    assert all(set(row) <= {"bt", *names} and names[0] in row for row in rows)
    often = [sum(name not in row for row in rows) / len(rows) for name in names[1:]]
    gaps = [share for share in often if share > 0]
    assert all(0.07 < share < 0.13 for share in gaps)
    assert len(gaps) >= len(names) // 2
    times = np.array([row["bt"] for row in rows])
    behind_s = (BEGIN_MS + np.arange(3_000) * 100 - times) / 1_000
    assert (behind_s >= 0).all()
    assert 0.03 < (behind_s > 0).mean() < 0.07
    assert 15 < behind_s[behind_s > 0].mean() < 45


def test_few_senders_send_most() -> None:
    options = Generate(keys=20, skew=1.0)
    counts = Counter(row["source"] for row in parsed(options, 4_000))
    ids = sensors(options)
    assert set(counts) == set(ids)
    harmonic = sum(1 / n for n in range(1, 21))
    assert counts[ids[0]] / 4_000 == pytest.approx(1 / harmonic, rel=0.1)
    assert counts[ids[0]] > 5 * counts[ids[19]]


def test_values_follow_each_other_and_outliers_do_not() -> None:
    rows = parsed(Generate(data="taxi", missing=0, outliers=0), 3_000)
    distance, time, fare = (
        np.array([float(r[n]) for r in rows]) for n in ("trip_distance", "trip_time_in_secs", "fare_amount")
    )
    weights, *_ = np.linalg.lstsq(np.column_stack([np.ones(3_000), distance, time]), fare)
    assert weights == pytest.approx([2.5, 1.9, 0.006], rel=0.05)
    wild = parsed(Generate(data="taxi", missing=0, outliers=0.05), 3_000)
    assert 0.03 < np.mean([float(row["fare_amount"]) > 1_000 for row in wild]) < 0.07


@pytest.mark.parametrize("data", SETS)
def test_the_values_behind_the_records(data: Any) -> None:
    options = Generate(data=data, missing=0, outliers=0)
    values = values_of(options, 1_500)
    ids = sensors(options)
    for place, row in enumerate(parsed(options, 1_500)):
        assert row[FIELDS[data][0].name] == ids[int(values["key"][place])]
        assert all(float(row[name]) == pytest.approx(some[place]) for name, some in values.items() if name != "key")
    calm = values_of(options, 1_500, noisy=False)
    assert any((calm[name] != values[name]).any() for name in values)
    assert (calm["key"] == values["key"]).all()


def test_csv_says_the_same_as_senml() -> None:
    for data in SETS:
        options = Generate(data=data)  # type: ignore[arg-type]
        lines = records(options.model_copy(update={"form": "csv"}), range(200))
        for row, line in zip(parsed(options, 200), lines, strict=True):
            time, *values = line.decode().split(",")
            assert datetime.fromisoformat(time).timestamp() * 1_000 == pytest.approx(row["bt"])
            assert values == [row.get(field.name) or "" for field in FIELDS[data]]


@pytest.mark.parametrize("data", SETS)
def test_the_parser_finds_every_broken_record_and_no_other(data: Any) -> None:
    options = Generate(data=data, bad=0.05)
    columns = ", ".join(f"{f.name} {'double' if f.number else 'string'}" for f in FIELDS[data])
    units = {field.name: field.unit for field in FIELDS[data] if field.number}
    parse = ParseSenml(columns=columns, required=(FIELDS[data][0].name,), units=units, longest=10_000)
    made = parse_senml(parse)(pa.record_batch({"value": pa.array(records(options, range(2_500)), pa.binary())}))
    kinds = bad_kinds(options, range(2_500))
    assert {place for place, _ in made.failed} == {place for place, kind in enumerate(kinds) if kind is not None}
    assert set(kinds) == {None, *BAD}
    assert 0.03 < len(made.failed) / 2_500 < 0.07
