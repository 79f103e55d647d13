"""``headgate submit --plan``: a plan is applied as it was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.api.application import application
from headgate.api.server import serving
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.cli.terminal import headgate

FLOW = """\
name: smooth
service_level: {break_even_at_best_per_h: 5, break_even_at_worst_per_h: 2}
tasks:
- {id: read, type: read_files, cost_s: 0.001, config: {path: in, columns: "sensor string, v double"}}
- id: mean
  inputs: [read]
  alternates:
  - {name: fine, type: kalman, value: 1, cost_s: 8, config: {key: [sensor], column: v, into: mean}}
  - {name: coarse, type: moving_average, value: 0.9, cost_s: 0.02, config: {key: [sensor], column: v, into: mean}}
- {id: store, type: write_files, cost_s: 0.001, inputs: [mean], config: {path: out}}
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir()
    return made


@pytest.fixture
def engine(state: Path) -> Iterator[FakeEngine]:
    made = FakeEngine(state)
    with serving(state, application(ServedEngine(made, default_registry()))):
        yield made


def test_alternates_and_partitions_of_the_plan_become_active(engine: FakeEngine, state: Path, tmp_path: Path) -> None:
    (tmp_path / "smooth.yaml").write_text(FLOW)
    plan = tmp_path / "plan.json"
    ran = headgate("plan", tmp_path / "smooth.yaml", "--rate", "20", "--algorithm", "exact", "--out", plan, "--json")
    assert ran.status == 0, ran.err
    cores = {row["task"]: row["cores"] for row in ran.json["allocation"]}
    assert {row["task"]: row["alternate"] for row in ran.json["allocation"]}["mean"] == "coarse"
    ran = headgate("submit", "--plan", plan, "--state", state)
    assert ran.status == 0, ran.err
    assert [flow.name for flow in engine.dataflows] == ["smooth"]
    assert engine.done == [("switch", "smooth", "mean", "coarse"), ("repartition", "smooth", "mean", cores["mean"])]
    assert "uses alternate coarse" in ran.out


def test_a_plan_without_capacity_only_submits(engine: FakeEngine, state: Path, tmp_path: Path) -> None:
    (tmp_path / "smooth.yaml").write_text(FLOW)
    plan = tmp_path / "plan.json"
    assert headgate("plan", tmp_path / "smooth.yaml", "--out", plan).status == 0
    assert headgate("submit", "--plan", plan, "--state", state).status == 0
    assert [flow.name for flow in engine.dataflows] == ["smooth"]
    assert engine.done == []


def test_either_files_or_a_plan_are_submitted(tmp_path: Path) -> None:
    for arguments in ((), ("flow.yaml", "--plan", "plan.json")):
        ran = headgate("submit", *arguments, "--state", tmp_path)
        assert (ran.status, ran.out) == (2, "")
        assert "--plan" in ran.err
    assert "cannot read" in headgate("submit", "--plan", tmp_path / "none.json", "--state", tmp_path).err
