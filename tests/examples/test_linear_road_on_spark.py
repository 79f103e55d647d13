"""Linear Road on Spark: every answer against a validator that works all out again, and shares nothing with the tasks.

The dataflow is examples/linear_road/linear_road.yaml, with files in the place of the replayed one.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from headgate.documents import parse
from headgate.runtime.engine.engine import Engine
from headgate_benchmarks.checkout import shared_data
from headgate_benchmarks.linear_road.trial import trial

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

traffic = importlib.import_module("examples.linear_road.traffic")
make = importlib.import_module("examples.linear_road.make")
validate = importlib.import_module("examples.linear_road.validate")


def document(folder: Path) -> dict[str, Any]:
    """The dataflow, reading files that come one by one and writing to a folder."""
    text = (ROOT / "examples/linear_road/linear_road.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text.replace("out/linear_road", str(folder)))
    source = found["tasks"][0]
    columns = source["config"]["columns"]
    config = {"path": str(folder / "in"), "format": "parquet", "columns": columns, "files_per_batch": 1}
    source.update(type="read_files", config=config)
    return found


def put(folder: Path, rows: Any, files: int) -> None:
    """Write rows as so many files, of different sizes, and what is known of the days before."""
    (folder / "in").mkdir(parents=True)
    make.write_tables(folder, rows)
    table = make.table_of(rows)
    cuts = np.sort(np.random.default_rng(5).integers(0, len(rows), files - 1))
    for number, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        pq.write_table(table.slice(first, last - first), folder / "in" / f"{number:04d}.parquet")


def answered(engine: Engine, folder: Path) -> tuple[Any, Any]:
    """Run the dataflow over the files; returns what is right and what was answered."""
    engine.submit(parse(json.dumps(document(folder)), "json").dataflow)
    engine.wait_until_idle()
    assert not engine.failures()
    rows = [validate.read_rows(file) for file in sorted((folder / "in").glob("*.parquet"))]
    columns = {name: np.concatenate([part[name] for part in rows]) for name in rows[0]}
    history, usual = validate.read_history(folder / "tolls.db"), np.load(folder / "usual.npy")
    return validate.expect(columns, history, usual), validate.read_answers(folder / "answers")


@pytest.mark.slow
def test_the_real_sample(engine: Engine, tmp_path: Path) -> None:
    """Linear Road's own data, 214 seconds of one expressway, with an accident in them."""
    given = shared_data()
    if given is None:
        pytest.skip("the sample is not here")
    rows = traffic.Traffic(validate.read_rows(given / "linear_road" / "lrb_L1_t0_214.csv.gz"))
    put(tmp_path, rows, 3)
    expected, answers = answered(engine, tmp_path)
    found = validate.check(expected, answers)
    assert found.right, found
    assert len(expected.accidents) == 1
    assert found.wanted["tolls"] > 3_000


@pytest.mark.slow
def test_every_answer_is_right(engine: Engine, tmp_path: Path) -> None:
    road = traffic.Road(cars=1_500, entering_per_s=6, jams=2, crowding=3, queries=0.03, come_back=0.3)
    rows = traffic.make(2, 330, 4, road)
    put(tmp_path, rows, 7)
    expected, answers = answered(engine, tmp_path)
    found = validate.check(expected, answers)
    assert found.right, found
    assert sum(toll > 0 for _, toll in expected.tolls.values()) > 100
    assert len(expected.alerts) > 20
    assert sum(balance > 0 for balance, _ in answers.balances.values()) > 5
    assert all(found.wanted.values())
    assert {(a.xway, a.dir, a.lane, a.pos, a.since_s) for a in rows.accidents} <= {a[:5] for a in expected.accidents}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_at_true_pace_every_answer_is_right_and_has_its_time(spark: SparkSession, tmp_path: Path) -> None:
    """A minute and a half of 600 reports a second; whether all are in time depends on what else the machine does."""
    road = traffic.Road(cars=18_000, entering_per_s=40, accident_s=0)
    rows = traffic.make(1, 105, 8, road, None, 25)
    outcome = trial(spark, tmp_path / "trial", rows, road, lead_s=20)
    assert outcome.right, outcome.verdict
    assert outcome.answers > 10_000
    assert set(outcome.p99_s) == set(validate.DEADLINES_S)
    assert outcome.in_time > 0
