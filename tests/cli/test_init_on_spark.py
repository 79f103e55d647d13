"""``headgate init``: the project that it writes runs as its README says."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.engine import engine as engine_module
from headgate.runtime.engine.engine import Engine
from tests.cli.terminal import headgate
from tests.runtime.small import json_rows

pytestmark = pytest.mark.spark


def test_a_new_project_runs_at_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "Engine", partial(Engine, spark=spark))
    assert headgate("init", tmp_path / "demo").status == 0
    monkeypatch.chdir(tmp_path / "demo")
    monkeypatch.setattr(sys, "path", [*sys.path])
    subprocess.run([sys.executable, "make_data.py"], check=True, capture_output=True)
    ran = headgate("run", "alarms.yaml", "averages.yaml", "--until-idle", "--trigger", "100ms")
    assert ran.status == 0, ran.err
    alarms, averages = json_rows(Path("out/alarms")), json_rows(Path("out/averages"))
    assert alarms
    assert all(row["temperature"] > 35 for row in alarms)
    assert len(averages) == 600
    assert Path(".headgate").is_dir()
