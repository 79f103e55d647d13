"""Jobs that are kept from one epoch to the next put out what new ones would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.runtime.engine.engine import Engine
from tests.runtime.small import files, flow, numbered, put

FILES = 4


def _lines(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(out.glob("*.json")) for line in file.read_text().splitlines()]


def _ran(engine: Engine, place: Path, columns: dict[str, str]) -> tuple[list[dict[str, object]], list[object]]:
    """The rows of a few epochs with derived columns, and the jobs that were kept."""
    (place / "in").mkdir()
    derive = {"id": "d", "type": "derive", "config": {"columns": columns}}
    sink = {"id": "w", "type": "write_files", "config": {"path": str(place / "out"), "format": "json"}}
    put(place / "in", "0", numbered(0, 5))
    engine.submit(flow("f", files(place / "in"), derive, sink))
    for number in range(1, FILES):
        engine.wait_until_idle()
        put(place / "in", str(number), numbered(number * 5, 5))
    engine.wait_until_idle()
    (fragment,) = engine.fragments.values()
    return _lines(place / "out"), list(fragment.epochs.jobs._kept._jobs.values())  # type: ignore[attr-defined]


@pytest.mark.spark
def test_a_plain_job_is_planned_once_and_reads_each_epochs_rows(engine: Engine, tmp_path: Path) -> None:
    rows, kept = _ran(engine, tmp_path, {"twice": "2 * id"})
    assert sorted((row["id"], row["twice"]) for row in rows) == [(n, 2 * n) for n in range(5 * FILES)]
    assert len(kept) == 1
    assert kept[0] is not None


@pytest.mark.spark
def test_what_spark_fixes_when_it_plans_is_new_in_each_epoch(engine: Engine, tmp_path: Path) -> None:
    rows, kept = _ran(engine, tmp_path, {"u": "uuid()", "at": "now()"})
    assert len({row["u"] for row in rows}) == 5 * FILES, "no identifier comes twice"
    assert len({row["at"] for row in rows}) == FILES, "each epoch has a time of its own"
    assert set(kept) == {None}
