"""What a sink has got is on the disk when it is noted as delivered: its folder is synced, once for all of an epoch."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headgate.documents import parse
from headgate.runtime.epochs.delivery import Deliveries
from headgate.runtime.io.outbox import SinkOutbox
from headgate.runtime.io.sinks import MemorySink
from headgate.store.entries import CommittedOutput, EpochCommitted, OutputKind, StagedRows, Target
from tests.compiled import plan_of


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and folders that are synced."""
    paths: list[Path] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        paths.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return paths


def test_folders_of_sinks_are_synced(tmp_path: Path, synced: list[Path]) -> None:
    places = [tmp_path / "out" / name for name in ("a", "b")]
    read = {"id": "r", "type": "read_files", "config": {"path": str(tmp_path), "columns": "id bigint"}}
    writes = [
        {"id": place.name, "type": "write_files", "config": {"path": str(place)}, "inputs": ["r"]} for place in places
    ]
    plan = plan_of(parse(json.dumps({"name": "f", "tasks": [read, *writes]}), "json").dataflow)
    nothing: Any = None
    (tmp_path / "pending").mkdir()
    outbox = SinkOutbox(tmp_path / "pending", nothing, MemorySink(), lambda _: plan)
    deliveries = Deliveries(nothing, outbox, nothing, lambda _: plan)

    def epoch(number: int) -> None:
        sinks = [signature for signature, task in plan.tasks.items() if task.alternate.type == "write_files"]
        staged = [tmp_path / f"{number}-{at}.json" for at in range(len(sinks))]
        for file in staged:
            file.write_text('{"id": 1}\n')
        targets = [Target(OutputKind.SINK, sink, 1) for sink in sinks]
        outputs = [CommittedOutput(to, (StagedRows(str(file), 1),)) for to, file in zip(targets, staged, strict=True)]
        deliveries.deliver(EpochCommitted("s-1", number, (1,), tuple(outputs)))

    epoch(0)
    assert sorted(synced) == sorted([*places, tmp_path / "out"])

    places[0].rename(tmp_path / "away")
    places[0].touch()  # it refuses
    synced.clear()
    epoch(1)
    assert places[1] in synced
    assert places[0] not in synced
    synced.clear()
    places[0].unlink()
    outbox.retry()
    assert places[0] in synced
    assert len(list(places[0].glob("part-*"))) == 1
