"""The dataflows in examples/ are valid, the forms of one are one value, and what is to be run runs."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from headgate import default_registry, parse, read
from headgate.model.schema import Schema
from headgate.service.load import load
from headgate.service.size import load_request, size
from headgate.sharing.merge import merge

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SIZING = sorted((EXAMPLES / "sizing").iterdir())
EXPERIMENT = EXAMPLES / "simulation" / "variability.yaml"
RIOTBENCH = EXAMPLES / "riotbench"
TABLES = set((RIOTBENCH / "tables").iterdir())
MADE = ("nexmark", "micro")
"""Folders whose dataflows are written by a make.py."""

WITH_SCRIPTS = ("tweets", "riotbench", "nexmark", "sentiment", "micro", "linear_road", "orders")
SCRIPTS = {EXAMPLES / "demo.py", EXAMPLES / "demo_screen.py", EXAMPLES / "city_data.py"} | {
    path for folder in WITH_SCRIPTS for path in (EXAMPLES / folder).glob("*.py")
}
TEXTS = {path for path in (EXAMPLES / "sentiment").rglob("*") if path.suffix in (".txt", ".json")}
SERIES = set((EXAMPLES / "forecasting").iterdir())
APPLICATIONS = {
    path for name in ("patterns", "logos") for path in (EXAMPLES / name).rglob("*") if path.suffix in (".py", ".png")
}
NOT_DATAFLOWS = {EXPERIMENT, *SCRIPTS, *SIZING, *TABLES, *SERIES, *TEXTS, *APPLICATIONS}
DATAFLOWS = sorted(
    path
    for path in EXAMPLES.rglob("*")
    if path.is_file() and path not in NOT_DATAFLOWS and "__pycache__" not in path.parts
)


@pytest.mark.parametrize("path", DATAFLOWS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_valid_and_without_notices(path: Path) -> None:
    assert not load(path, default_registry()).notices


@pytest.mark.parametrize("path", SIZING, ids=lambda path: path.name)
def test_sizing_files_are_valid_and_can_be_had(path: Path) -> None:
    assert size(load_request(path)).processors > 0


def test_the_experiment_is_valid() -> None:
    pytest.importorskip("numpy")
    from headgate.service.experiment import load_experiment

    assert len(load_experiment(EXPERIMENT).cells) == 36


def test_riotbench_is_as_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables, dataflows, and what their alternates are worth, which is measured anew."""
    monkeypatch.syspath_prepend(RIOTBENCH)
    made = importlib.import_module("make").files()
    there = {str(p.relative_to(RIOTBENCH)): p.read_text() for p in RIOTBENCH.rglob("*.yaml")}
    there |= {str(path.relative_to(RIOTBENCH)): path.read_text() for path in TABLES}
    assert made == there


@pytest.mark.parametrize("name", MADE)
def test_dataflows_are_as_they_are_made(name: str) -> None:
    pytest.importorskip("numpy")
    made = importlib.import_module(f"examples.{name}.make").files()
    assert made == {path.name: path.read_text(encoding="utf-8") for path in (EXAMPLES / name).glob("*.yaml")}


def test_the_queries_of_nexmark_share_much() -> None:
    flows = [read(path).dataflow for path in sorted((EXAMPLES / "nexmark").glob("*.yaml"))]
    merged = merge(flows).graph.tasks
    assert len(flows) == 9
    assert [sum(task.type == kind for task in merged) for kind in ("read_files", "parse_json", "write_files")] == [
        1,
        1,
        9,
    ]
    assert len(merged) < 0.6 * sum(len(flow.tasks) for flow in flows)


def test_the_permutations_of_riotbench_share_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(RIOTBENCH)
    documents = importlib.import_module("permutations").dataflows()
    checked = [parse(json.dumps(document), "json") for document in documents]
    assert not any(found.notices for found in checked)
    flows = [found.dataflow for found in checked]
    kinds = {task.type for flow in flows for task in flow.tasks}
    assert len(flows) == 21
    assert {"parse_senml", "kalman", "interpolate", "distinct_sketch", "second_moment", "error_estimate"} <= kinds
    assert len(merge(flows).graph.tasks) < 0.6 * sum(len(flow.tasks) for flow in flows)


def test_the_four_word_counts_are_one_value() -> None:
    yaml, *others = (read(EXAMPLES / f"word_count.{ending}").dataflow for ending in ("yaml", "json", "xml", "py"))
    assert others == [yaml, yaml, yaml]


def test_there_are_alternates_and_a_loop() -> None:
    tweets, patterns = (read(EXAMPLES / name).dataflow for name in ("tweets/tweets.xml", "patterns/patterns.yaml"))
    assert any(task.is_dynamic for task in tweets.tasks)
    assert any(stream.feedback for stream in patterns.streams)


def test_the_demonstration_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "demo.py"), str(tmp_path / "out"), "--no-run"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=60,
    )
    assert not done.stderr
    assert "9 tasks saved" in done.stdout
    picture = (tmp_path / "out" / "running.svg").read_text(encoding="utf-8")
    assert "for alarms, map, archive, quality" in picture


def test_the_generated_readings_have_the_columns_that_the_dataflows_parse(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "city_data.py"), str(tmp_path), "--rows", "1500"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    files = sorted((tmp_path / "city").glob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert [len(files), len(rows)] == [2, 1500]
    parse = next(task for task in read(EXAMPLES / "city" / "alarms.yaml").dataflow.tasks if task.type == "parse_json")
    wanted = Schema.parse(str(parse.config["columns"]))
    assert {tuple(row) for row in rows} == {wanted.names}
    assert (tmp_path / "repairs" / "repairs.csv").exists()
