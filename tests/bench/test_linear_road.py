"""The benchmark of Linear Road without Spark: files and their moments, arrivals and emissions, what counts as held."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from headgate.bench import linear_road, linear_road_trial
from headgate.bench.linear_road_trial import Outcome, dataflow, example, make_importable
from headgate.errors import InputError
from headgate.formats import parse

GOOD = Outcome(1, 1_700.0, True, "", 10, 1.0, {"tolls": 1.5, "balances": 2.0}, {"tolls": 2.5}, None, [], 10.0, 10.0)


def test_the_dataflow_reads_files_and_is_valid(tmp_path: Path) -> None:
    document = dataflow(tmp_path)
    assert str(tmp_path) in json.dumps(document)
    assert "out/linear_road" not in json.dumps(document)
    assert not parse(json.dumps(document), "json").notices


def test_rows_are_fed_in_order_and_when_they_are_due(tmp_path: Path) -> None:
    rows = example("traffic").make(1, 6, 1, example("traffic").Road(cars=300), None, 25)
    due, file_of = linear_road_trial._files(tmp_path, rows)
    tables = [pq.read_table(path) for _, path in due]
    assert np.array_equal(np.concatenate([t.column("time").to_numpy() for t in tables]), rows.columns["time"])
    for (due_s, _), table in zip(due, tables, strict=True):
        assert set(table.column("time").to_pylist()) == {25 + int(due_s)}
    assert [table.num_rows for table in tables] == np.bincount(file_of).tolist()
    assert len(due) == 12


def test_arrivals_and_emissions_are_real_moments(tmp_path: Path) -> None:
    for name in ("in", "waiting", "answers/tolls"):
        (tmp_path / name).mkdir(parents=True)
    files = [(0.05 * n, tmp_path / "waiting" / f"{n}.parquet") for n in range(3)]
    for _, path in files:
        path.touch()
    feeder = linear_road_trial._Feeder(tmp_path / "in", files)
    receiver = linear_road_trial._Receiver(tmp_path / "answers", ("tolls", "alerts"))
    thread = threading.Thread(target=feeder.feed)
    thread.start()
    thread.join(10)
    assert len(list((tmp_path / "in").iterdir())) == 3
    assert all(at >= feeder.began + due for at, (due, _) in zip(feeder.arrived, files, strict=True))
    (tmp_path / "answers/tolls/a.parquet").touch()
    before = time.time()
    receiver.look()
    first = dict(receiver.seen)
    receiver.look()
    assert receiver.seen == first
    assert first["tolls", "a.parquet"] >= before


def test_only_a_hold_without_a_late_or_wrong_answer_counts() -> None:
    switching = linear_road._Switching(lambda _: None)
    ramp = replace(GOOD, in_time=0.9, first_late_s=60.0, responses=[(59.0, 2.0), (61.0, 6.0), (62.0, 4.0)])
    holds = {4: replace(GOOD, in_time=0.9999), 3: replace(GOOD, right=False), 2: GOOD}
    figures = linear_road._measured(ramp, holds, 5, switching).figures
    assert (figures["expressways"], figures["in_time"], figures["p99_s"]) == (2, 1.0, 1.5)
    assert (figures["ramp_late_at"], figures["beyond_in_time"]) == (5, 0.5)
    del holds[2]
    assert linear_road._measured(ramp, holds, 5, switching).figures["expressways"] == 0


def test_without_the_examples_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(linear_road_trial, "ROOT", tmp_path)
    with pytest.raises(InputError, match="run it in a clone"):
        make_importable()
