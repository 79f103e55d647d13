"""The dataflows of the examples are not only valid: Spark runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.documents import read
from headgate.runtime.engine.engine import Engine
from tests.runtime.compared import parquet_rows
from tests.runtime.small import put_text

EXAMPLES = Path(__file__).parents[2] / "examples" / "city"
READING = {"sensor": "s", "district": "west", "t": "2026-01-01T00:00:00Z", "temperature": 9, "humidity": 5, "dust": 60}


@pytest.mark.spark
def test_the_city(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put_text(tmp_path / "data" / "city", "0.jsonl", json.dumps(READING) + "\n")
    put_text(tmp_path / "data" / "repairs", "0.csv", "s,2026-01-01T02:00:00Z,ana\n")
    (tmp_path / "out").mkdir()
    for name in ("alarms.yaml", "map.yaml", "archive.json", "quality.py"):
        engine.submit(read(EXAMPLES / name).dataflow)
    engine.wait_until_idle()
    put_text(tmp_path / "data" / "city", "1.jsonl", json.dumps({**READING, "sensor": "other"}) + "\n")
    engine.wait_until_idle()
    found = {flow.name: (flow.state, flow.reason) for flow in engine.status()[0]}
    assert found == dict.fromkeys(("alarms", "map", "archive", "quality"), ("running", ""))
    assert "other" in {row["sensor"] for row in parquet_rows(tmp_path / "out" / "archive")}
