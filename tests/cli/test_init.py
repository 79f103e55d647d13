"""``headgate init``: whole projects, and never over what is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headgate.service.init import FILES
from tests.cli.terminal import headgate


def test_the_project_is_valid_and_its_settings_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = headgate("init", tmp_path / "demo")
    assert ran.status == 0, ran.err
    assert {path.name for path in (tmp_path / "demo").iterdir()} == set(FILES)
    monkeypatch.chdir(tmp_path / "demo")
    done = subprocess.run([sys.executable, "make_data.py"], capture_output=True, text=True, check=True)
    assert len(list(Path("data").glob("*.jsonl"))) == 10
    assert done.stdout.startswith("600 readings")
    assert headgate("validate", "alarms.yaml", "averages.yaml").status == 0
    sharing = headgate("plan", "alarms.yaml", "averages.yaml", "--json").json
    assert [row["shared"] for row in sharing["dataflows"]] == [0, 1]


def test_existing_files_are_left_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("mine")
    monkeypatch.chdir(tmp_path)
    ran = headgate("init")
    assert (ran.status, ran.out) == (2, "")
    assert "README.md" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
