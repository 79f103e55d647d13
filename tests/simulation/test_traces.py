"""Traces are read from CSV and parquet into one pool; whatever is wrong with them is told."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headgate.errors import InputError
from headgate.model.trace_statistics import TraceUnit
from headgate.service.simulate import pool_named
from headgate.simulation.traces import coefficients, pool_of, read_csv_columns, trace_files, traces_of

LONG: dict[str, list[Any]] = {
    "vm": ["a"] * 4 + ["b"] * 4,
    "t_s": [0, 300, 600, 900] * 2,
    "cpu": [1.0, 0.5, 1.0, 1.0, 0.8, 0.8, 0.4, 0.8],
}


def _csv(path: Path, columns: dict[str, list[Any]]) -> Path:
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_long_wide_zipped_and_parquet_tables_are_one_pool(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    wide = {"t_s": [0, 300, 600, 900], "a": LONG["cpu"][:4], "b": LONG["cpu"][4:]}
    files = [_csv(tmp_path / "long.csv", LONG), _csv(tmp_path / "wide.csv", wide), tmp_path / "t.parquet"]
    pq.write_table(pa.table(LONG), files[2])
    files.append(tmp_path / "long.csv.gz")
    files[3].write_bytes(gzip.compress(files[0].read_bytes()))
    pools = [pool_named(str(file), 1) for file in files]
    for pool in pools:
        assert pool.speed.tolist() == [[1.0, 0.5, 1.0, 1.0], [0.8, 0.8, 0.4, 0.8]]
        assert pool.every_s == 300.0
        assert (pool.bandwidth == 1).all()
    assert trace_files(tmp_path) == sorted(files)


def test_measurements_of_other_spacing_become_means_over_slots() -> None:
    columns: dict[str, list[Any]] = {"t_s": list(range(0, 1_200, 100)), "a": [1.0, 0.7, 0.4] * 4}
    pool = pool_of(traces_of(columns, "here"), "here")
    assert pool.speed[0] == pytest.approx([0.7] * 4)


@pytest.mark.parametrize(
    ("unit", "values", "wanted"),
    [
        (TraceUnit.SHARE, [0.5, 1.0], [0.5, 1.0]),
        (TraceUnit.PERCENT, [50, 100], [0.5, 1.0]),
        (TraceUnit.USED_PERCENT, [13, 100], [0.87, 0.01]),
        (TraceUnit.TIME, [28.0, 280.0], [1.0, 0.1]),
        (TraceUnit.RATE, [30.0, 60.0], [0.5, 1.0]),
    ],
)
def test_units_become_shares_of_the_best(unit: TraceUnit, values: list[float], wanted: list[float]) -> None:
    (trace,) = coefficients(traces_of({"t_s": [0, 60], "m": values}, "here"), unit, "here")
    assert trace.values == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("columns", "unit", "message"),
    [
        ({"t_s": [0, 60], "m": [50.0, 97.0]}, TraceUnit.SHARE, "are they of unit percent"),
        ({"t_s": [0, 60], "m": [50.0, 970.0]}, TraceUnit.SHARE, "are they of unit rate or time"),
        ({"t_s": [0, 60], "m": [50.0, 120.0]}, TraceUnit.PERCENT, "at most 100"),
        ({"t_s": [0, 60], "m": [-1.0, 0.5]}, TraceUnit.SHARE, "at least 0"),
        ({"t_s": [0, 60], "m": [0.0, 0.5]}, TraceUnit.TIME, "expected above 0"),
        ({"t_s": [0, 60], "m": [0.001, 0.002]}, TraceUnit.SHARE, "--unit time"),
    ],
)
def test_units_that_were_mixed_up_are_told(columns: dict[str, list[Any]], unit: TraceUnit, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        coefficients(traces_of(columns, "here"), unit, "here")
    assert caught.value.condition == "MIXED_UNITS"


@pytest.mark.parametrize(
    ("columns", "metric", "message"),
    [
        ({"time": [0], "m": [1]}, None, "no column t_s"),
        ({"ts": [0], "m": [1]}, None, "is it 'ts'"),
        ({"t_s": [0, 60, 30], "m": [1, 1, 1]}, None, "measured at 30 s after 60 s; sort the rows"),
        ({"t_s": [0, 60, 60], "m": [1, 1, 1]}, None, "leave doubles out"),
        ({"t_s": [0, 60], "m": [1, "n/a"]}, None, "row 3: m is 'n/a'"),
        ({"t_s": [0, 60], "m": [1, ""]}, None, "no row where nothing was measured"),
        ({"vm": ["a", "a"], "t_s": [0, 60], "cpu": [1, 1], "disk": [1, 1]}, None, "several metrics; choose one of cpu"),
        ({"vm": ["a", "a"], "t_s": [0, 60], "cpu": [1, 1]}, "cpuu", "did you mean 'cpu'"),
        ({"vm": ["a", "b"], "t_s": [0, 0], "cpu": [1, 1]}, None, "machine 'a' has one measurement"),
    ],
)
def test_tables_that_are_no_traces_are_told(columns: dict[str, list[Any]], metric: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        traces_of(columns, "here", metric)


def test_a_gap_is_told_with_its_ends() -> None:
    times = [0, 60, 120, 180, 3_000, 3_060]
    with pytest.raises(InputError, match="gap from 180 to 3000 s; expected a measurement about every 60 s"):
        pool_of(traces_of({"t_s": times, "m": [1.0] * 6}, "here"), "here")


def test_files_that_are_missing_or_broken_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder or file"):
        trace_files(tmp_path / "none")
    with pytest.raises(InputError, match="no file there ends in"):
        trace_files(tmp_path)
    (tmp_path / "short.csv").write_text("t_s,m\n0,1\n60\n")
    with pytest.raises(InputError, match=r"short.csv:3: 1 values where the header has 2"):
        read_csv_columns(tmp_path / "short.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InputError, match="has no rows"):
        read_csv_columns(tmp_path / "empty.csv")
    (tmp_path / "bad.csv.gz").write_bytes(b"not a zip")
    with pytest.raises(InputError, match="cannot read"):
        read_csv_columns(tmp_path / "bad.csv.gz")
    (tmp_path / "bad.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match="cannot read"):
        pool_named(str(tmp_path / "bad.parquet"), 1)
    with pytest.raises(InputError, match="unknown variability"):
        pool_named("ec3", 1)


def test_a_long_trace_keeps_its_mean() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(0.3, 1.0, 2_000)
    pool = pool_of(traces_of({"t_s": list(np.arange(2_000) * 37.0), "m": list(values)}, "here"), "here")
    assert pool.speed.mean() == pytest.approx(values.mean(), rel=0.01)
