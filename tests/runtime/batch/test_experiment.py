"""A grid of simulations as Spark jobs: the same numbers as one by one, durable, gone on with."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError, InvalidDataflow
from headgate.runtime.batch.experiment_job import finished_keys, read_results, run_waves
from headgate.service.experiment import COLUMNS, grouped, load_experiment, run_cell
from tests.cli.terminal import headgate

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "simulation"
GRID = """\
name: small
dataflows: linear_road.yaml
policies: [static, static-peak]
rates:
  steady: [50, weather=0.5]
  walking: ["random-walk:50", weather=0.5]
variability: [none, ec2]
seeds: 2
hours: 1
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    shutil.copy(EXAMPLES / "linear_road.yaml", tmp_path)
    (tmp_path / "grid.yaml").write_text(GRID)
    return tmp_path / "grid.yaml"


def test_cells_are_run_once_and_gone_on_with(spark: SparkSession, grid: Path, tmp_path: Path) -> None:
    grid.write_text(GRID.replace("[static, static-peak]", "[static]"))
    experiment = load_experiment(grid)
    cells = [(cell.key, cell.as_text()) for cell in experiment.cells]
    assert len({key for key, _ in cells}) == 8
    told: list[tuple[int, int]] = []
    results = tmp_path / "out" / "results"

    def stop(done: int, of: int) -> None:
        told.append((done, of))
        if 0 < done < 8:
            raise RuntimeError("stopped here")

    with pytest.raises(RuntimeError, match="stopped here"):
        run_waves(spark, cells, run_cell, COLUMNS, results, stop, cells_per_core=2)
    kept = finished_keys(spark, results)
    assert 0 < len(kept) < 8

    run_waves(spark, cells, run_cell, COLUMNS, results, lambda done, of: told.append((done, of)))
    assert told[-1] == (8, 8)
    assert (len(kept), 8) in told  # the second run began where the first had ended
    rows = read_results(spark, results, [key for key, _ in cells])
    assert len(rows) == 8
    assert spark.read.parquet(str(results)).count() == 8

    by_key = {row["key"]: row for row in rows}
    for cell in (experiment.cells[0], experiment.cells[-1]):
        here = run_cell(cell.as_text())
        assert by_key[cell.key]["omega"] == here["omega"]
        assert by_key[cell.key]["cost"] == here["cost"]
    first = spark.read.parquet(str(results)).where("policy = 'static' and variability = 'none'").first()
    assert first is not None
    assert len(first["omega_series"]) == len(first["theta_series"]) == 30

    groups: list[dict[str, Any]] = grouped(rows)
    assert len(groups) == 4
    assert all(group["seeds"] == 2 for group in groups)


def test_a_cell_that_fails_says_why(spark: SparkSession, grid: Path, tmp_path: Path) -> None:
    experiment = load_experiment(grid)
    cells = [(cell.key, cell.as_text()) for cell in experiment.cells[:1]]
    (grid.parent / "linear_road.yaml").unlink()
    with pytest.raises(InputError, match=r"a simulation failed: .*linear_road"):
        run_waves(spark, cells, run_cell, COLUMNS, tmp_path / "results", lambda *_: None)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("linear_road.yaml", "linear_rod.yaml", "cannot read"),
        ("[static, static-peak]", "[statik]", "did you mean 'static'"),
        ("random-walk:50", "random-wok:50", "unknown kind of rate"),
        ("[none, ec2]", "[ec3]", "unknown variability"),
        ("seeds: 2", "seeds: -2", "seeds"),
        ("hours: 1", "hour: 1", "did you mean 'hours'"),
    ],
)
def test_all_is_checked_before_anything_runs(grid: Path, old: str, new: str, told: str) -> None:
    grid.write_text(GRID.replace(old, new))
    with pytest.raises((InputError, InvalidDataflow), match=told):
        load_experiment(grid)


def test_the_command_writes_results_and_a_page(spark: SparkSession, grid: Path, tmp_path: Path) -> None:
    grid.write_text(GRID.replace("seeds: 2", "seeds: 1").replace("[none, ec2]", "[none]"))
    ran = headgate("experiment", grid, "--out", tmp_path / "out", "--master", "local[2]")
    assert ran.status == 0, ran.err
    assert "4 of 4 cells" in ran.err
    assert ran.out.count("linear_road") == 4
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Experiment small" in page
    assert "<svg" in page
    again = headgate("experiment", grid, "--out", tmp_path / "out", "--master", "local[2]", "--json")
    assert [group["policy"] for group in again.json["groups"]] == ["static", "static-peak"] * 2
    assert "0 of 4 cells" not in again.err
