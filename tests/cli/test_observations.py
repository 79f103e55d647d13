"""``headgate top`` and ``headgate observations``: what was measured, for people and for programs."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from headgate.cli.main import app
from headgate.errors import InputError
from headgate.report.render import render
from headgate.service.top import top_tables
from headgate.store.observations import ObservationHistory
from tests.store.test_observations import observation


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir()
    (made / "version").write_text("3", encoding="utf-8")
    history = ObservationHistory(made / "observations")
    for age_s in (3_600.0, 10.0, 1.0):
        history.append(observation(time.time() - age_s))
    return made


def shown(*arguments: str) -> str:
    done = CliRunner(env={"COLUMNS": "140"}).invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_top_shows_tasks_sinks_fragments_and_machines(state: Path) -> None:
    told = shown("top", "--state", str(state), "--once")
    for text in ("flow.parse", "0.96", "2.00", "flow.out", "0.90", "20", "50%", "0.97", "small"):
        assert text in told, told
    assert "source-1" not in told, "a fragment has the name of its root task"
    assert "does not seem to be running" not in told


def test_top_fits_80_columns() -> None:
    """With names as long as people give them, and a busy engine's numbers."""
    seen = observation(1.0)
    names = ["city_sensors.parse_reports", "city_sensors.only_valid_reports_of_today", "a.b"]
    tasks = tuple(replace(seen.tasks[0], name=name, rows_in=12_345_678, rows_out=1_234_567) for name in names)
    sinks = tuple(replace(sink, name="city_sensors.write_alarms") for sink in seen.sinks)
    text = render(top_tables(replace(seen, tasks=tasks, sinks=sinks), 20), "text", 80)
    assert max(map(len, text.splitlines())) <= 80, text
    assert "\na.b " in text
    assert "city_sensors.parse" in text


def test_top_tells_of_an_engine_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "version").write_text("3", encoding="utf-8")
    ObservationHistory(tmp_path / "observations").append(observation(time.time() - 100))
    assert "does not seem to be running" in shown("top", "--state", str(tmp_path), "--once")


def test_top_before_anything_was_measured(tmp_path: Path) -> None:
    (tmp_path / "version").write_text("3", encoding="utf-8")
    with pytest.raises(InputError, match="nothing has been measured"):
        CliRunner().invoke(app, ["top", "--state", str(tmp_path)], catch_exceptions=False)


def test_observations_as_a_list_and_as_json(state: Path) -> None:
    assert len(shown("observations", "--state", str(state), "--csv").splitlines()) == 4
    assert len(shown("observations", "--state", str(state), "--last", "1min", "--csv").splitlines()) == 3
    assert len(shown("observations", "--state", str(state)).splitlines()) == 6, "title, heading and rule"
    lines = shown("observations", "--state", str(state), "--json").splitlines()
    assert [json.loads(line)["tasks"][0]["profile"]["cpu_s_per_row"] for line in lines] == [2e-6] * 3


def test_export_holds_every_value(state: Path, tmp_path: Path) -> None:
    told = shown("observations", "--state", str(state), "--export", str(tmp_path / "out"))
    assert told.startswith("3 tasks, 3 sinks, 3 fragments, 3 machines, 3 sources, 3 dataflows, 3 together, 3 costs in ")
    (task, *_) = pq.read_table(tmp_path / "out" / "tasks.parquet").to_pylist()
    assert (task["rows_in"], task["rows_out"], task["errors"], task["dataflows"]) == (500, 480, 3, ["flow", "other"])
    assert (task["profile_cpu_s_per_row"], task["profile_memory_bytes"], task["profile_spread"]) == (2e-6, 4_096, None)
    (sink, *_) = pq.read_table(tmp_path / "out" / "sinks.parquet").to_pylist()
    assert (sink["rows"], sink["sojourn_p99_s"]) == (480, 1.1)
    (fragment, *_) = pq.read_table(tmp_path / "out" / "fragments.parquet").to_pylist()
    assert (fragment["rows_behind"], fragment["commit_s"]) == (20, 0.3)
    (machine, *_) = pq.read_table(tmp_path / "out" / "machines.parquet").to_pylist()
    assert (machine["busy"], machine["vm_class"], machine["price_per_h"]) == (0.5, "small", 0.05)
    (source, *_) = pq.read_table(tmp_path / "out" / "sources.parquet").to_pylist()
    assert (source["rows_arrived"], source["bytes_waiting"]) == (512.0, 4_000)
    (dataflow, *_) = pq.read_table(tmp_path / "out" / "dataflows.parquet").to_pylist()
    assert (dataflow["figures_omega"], dataflow["figures_sojourn_p95_s"], dataflow["figures_theta"]) == (
        0.98,
        0.9,
        None,
    )
    (cost, *_) = pq.read_table(tmp_path / "out" / "costs.parquet").to_pylist()
    assert (cost["cpu_s"], cost["origin"]) == (2e-6, "measured")
    with pytest.raises(InputError, match="is not an empty directory"):
        shown("observations", "--state", str(state), "--export", str(tmp_path / "out"))
