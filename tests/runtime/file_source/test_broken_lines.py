"""Lines that are no records, and files that cannot be read, go where on_error says, with their place and the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.runtime.engine.engine import Engine
from headgate.runtime.isolation.dead_letters import read_letters
from tests.runtime.small import files, flow, memory, numbered, put, put_text, wait_for

pytestmark = pytest.mark.spark

BROKEN = '{"id": 1, "k": "a", "v": 1}\n{"id": 2, "k"\n\n[7]\n{"id": 3, "k": "b", "v": 2}\nnonsense\n'
GOOD: list[dict[str, Any]] = [{"id": 1, "k": "a", "v": 1.0}, {"id": 3, "k": "b", "v": 2.0}]


def test_they_become_dead_letters_or_are_skipped_and_are_counted(engine: Engine, tmp_path: Path) -> None:
    for name in ("kept", "skipped"):
        put_text(tmp_path / name, "0.json", BROKEN)
        put_text(tmp_path / name, "1.json", "nonsense\n")
    (tmp_path / "parquet").mkdir()
    (tmp_path / "parquet" / "0.parquet").write_bytes(b"PAR1 not at all")
    parquet = files(tmp_path / "parquet", format="parquet")
    engine.submit(
        flow("kept", {**files(tmp_path / "kept"), "on_error": "dead_letter"}, memory("kept")),
        flow("skipped", {**files(tmp_path / "skipped"), "on_error": "skip"}, memory("skipped")),
        flow("parquet", {**parquet, "on_error": "dead_letter"}, memory("parquet")),
    )
    engine.wait_until_idle()
    assert engine.memory.rows("kept") == engine.memory.rows("skipped") == GOOD
    letters = list(read_letters(engine.state.path, lambda _task, dataflows: "kept" in dataflows))
    first = tmp_path / "kept" / "0.json"
    assert [(letter.record, letter.error.rpartition(": ")[0].split(": ")[0]) for letter in letters] == [
        ('{"id": 2, "k"', f"{first}:2"),
        ("[7]", f"{first}:4"),
        ("nonsense", f"{first}:6"),
        ("nonsense", f"{tmp_path / 'kept' / '1.json'}:1"),
    ]
    assert letters[1].error == f"{first}:4: not a JSON object"
    (letter,) = read_letters(engine.state.path, lambda _task, dataflows: "parquet" in dataflows)
    assert letter.record == str(tmp_path / "parquet" / "0.parquet")
    reasons = {found.name: found.reason for found in engine.status()[0]}
    assert "has put among the dead letters 4 rows, the last for " in reasons["kept"]
    assert "has skipped 4 rows, the last for " in reasons["skipped"]


def test_by_default_the_source_stops_there_and_goes_on_when_the_file_is_mended(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 3))
    engine.submit(flow("f", files(tmp_path / "in"), memory("f")))
    engine.wait_until_idle()
    put_text(tmp_path / "in", "1.json", '{"id": 3, "k": "k0", "v": -0.5}\nnonsense\n')
    wait_for(lambda: engine.status()[0][0].state == "degraded", "the source to stop")
    reason = engine.status()[0][0].reason
    assert f"{tmp_path / 'in' / '1.json'}:2 cannot be read" in reason
    assert "give the task on_error: dead_letter or skip" in reason
    put(tmp_path / "in", "1", numbered(3, 5))

    def there_are(rows: int) -> bool:
        engine.housekeep()
        return len(engine.memory.rows("f")) == rows

    wait_for(lambda: there_are(8), "the mended file")
    assert engine.memory.rows("f") == numbered(0, 8)
    put_text(tmp_path / "in", "2.json", "nonsense\n")
    wait_for(lambda: engine.status()[0][0].state == "degraded", "the source to stop")
    (tmp_path / "in" / "2.json").unlink()
    put(tmp_path / "in", "3", numbered(8, 1))
    wait_for(lambda: there_are(9), "what comes after the removed file")
    (letter,) = read_letters(engine.state.path, lambda _task, dataflows: "f" in dataflows)
    assert letter.record == str(tmp_path / "in" / "2.json")
    assert "has put among the dead letters 1 row, the last for " in engine.status()[0][0].reason
