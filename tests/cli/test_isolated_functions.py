"""An engine whose settings grant modules: functions run behind Spark's workers, and one that ends harms itself only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headgate.api.client import EngineClient
from headgate.errors import InputError
from headgate.tasks.isolated.landlock import landlock_version
from tests.processes import PATIENCE_S, end, start
from tests.runtime.small import COLUMNS, numbered, put, wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.own_spark,
    pytest.mark.skipif(landlock_version() == 0, reason="the system has no Landlock"),
]

MODULE = """
import os

def process(row):
    return {**row, "k": f"{os.getpid()} {len(os.environ)} {os.listdir()}"}

def ends(row):
    os._exit(7)

def total(state, row):
    total = (state or 0) + row["id"]
    return total, {"total": float(total)}
"""


def flow(folder: Path, name: str, **step: Any) -> dict[str, Any]:
    tasks = [
        {"id": "read", "type": "read_files", "config": {"path": str(folder / "in"), "columns": COLUMNS}},
        {"id": "step", **step, "inputs": ["read"]},
        {"id": "write", "type": "write_files", "config": {"path": str(folder / name)}, "inputs": ["step"]},
    ]
    return {"name": name, "owner": "city", "tasks": tasks}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineClient]:
    (tmp_path / "lake.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "headgate.toml").write_text('[allow]\nmodules = ["lake"]\n', encoding="utf-8")
    command = [sys.executable, "-m", "headgate", "run", "--serve", "--trigger", "100ms", "--master", "local[2]"]
    process = start([*command, "--state", str(tmp_path / "state")], tmp_path)
    try:
        with EngineClient(tmp_path / "state", patience_s=0.0) as client:

            def answers() -> bool:
                assert process.poll() is None, (tmp_path / "log").read_text(errors="replace")[-3000:]
                with suppress(InputError):
                    return bool(client.dataflows())
                return False

            wait_for(answers, "an engine that answers", PATIENCE_S)
            yield client
    finally:
        end(process)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in folder.glob("*.json") for line in file.read_text().splitlines()]


def test_functions_run_in_processes_of_their_own(engine: EngineClient, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 8))
    total = {"function": "lake.total", "key": ["k"], "takes": ["id"], "columns": "total double"}
    engine.submit(
        [
            flow(tmp_path, "honest", type="filter", config={"where": "id >= 0"}),
            flow(tmp_path, "looks", type="python", config={"function": "lake.process"}),
            flow(tmp_path, "ends", type="python", config={"function": "lake.ends"}),
            flow(tmp_path, "adds", type="fold", config=total),
        ]
    )
    with pytest.raises(InputError, match=r"cannot load function 'lake\.nothing'"):
        engine.submit([flow(tmp_path, "bad", type="python", config={"function": "lake.nothing"})])

    def reason() -> str:
        return str({one["name"]: one["reason"] for one in engine.dataflows()["dataflows"]}["ends"])

    wait_for(lambda: "ended with status 7" in reason(), "the reason", PATIENCE_S)
    wait_for(lambda: len(rows(tmp_path / "looks")) == 8, "rows of a function", PATIENCE_S)
    wait_for(lambda: len(rows(tmp_path / "adds")) == 8, "rows of a fold", PATIENCE_S)
    wait_for(lambda: len(rows(tmp_path / "honest")) == 8, "rows of a neighbour", PATIENCE_S)
    assert all(row["k"].endswith(" 3 []") for row in rows(tmp_path / "looks")), "three variables, and an empty folder"
    wanted: dict[str, list[float]] = {}
    for row in numbered(0, 8):
        sums = wanted.setdefault(row["k"], [])
        sums.append((sums[-1] if sums else 0.0) + row["id"])
    got: dict[str, list[float]] = {}
    for row in sorted(rows(tmp_path / "adds"), key=lambda row: row["id"]):
        got.setdefault(row["k"], []).append(row["total"])
    assert got == wanted
