"""The backlog of a fragment, from what its reader and Spark's checkpoint say."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from headgate.runtime.epochs.backlog import Backlog
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.spark_internals.checkpoint import Checkpoint
from headgate.tasks.source_folder import Due, write_due, write_note


class Rig:
    """A fragment's folder, as its reader and Spark write it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.checkpoint = folder, Checkpoint(folder / "checkpoint")
        (folder / "exchange").mkdir()
        self.exchange = FileExchange(folder / "exchange")
        self.topics: list[str] = []
        self.is_active = True
        self.backlog = Backlog(folder, self.checkpoint, self.exchange, lambda: self.topics, lambda: self.is_active)

    def begin(self, epoch: int, rows: int) -> None:
        self._write("offsets", epoch, f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps({"rows": rows})}')

    def commit(self, epoch: int) -> None:
        self._write("commits", epoch, "v1\n{}")

    def _write(self, kind: str, epoch: int, text: str) -> None:
        (self.checkpoint.folder / kind).mkdir(parents=True, exist_ok=True)
        (self.checkpoint.folder / kind / str(epoch)).write_text(text)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_what_a_source_does_not_report_is_unknown(rig: Rig) -> None:
    assert (rig.backlog.rows(), rig.backlog.bytes()) == (None, None)
    assert (rig.backlog.throttled(), rig.backlog.is_empty()) == (0, True), "nothing is known to wait"
    write_due(rig.folder, Due(time.time(), 500, 0.0, 200))
    assert (rig.backlog.rows(), rig.backlog.bytes()) == (500, None)
    write_due(rig.folder, Due(time.time(), 500, 0.0, 200, 4_000))
    assert (rig.backlog.rows(), rig.backlog.bytes()) == (500, 4_000)


def test_rows_are_behind_until_their_epoch_is_done(rig: Rig) -> None:
    write_due(rig.folder, Due(time.time(), 500, 0.0, 0))
    rig.begin(0, 500)
    assert rig.backlog.rows() == 500
    assert rig.backlog.throttled() == 0, "no limit keeps them waiting"
    rig.commit(0)
    assert rig.backlog.rows() == 0


def test_files_that_come_during_a_long_epoch_are_counted(rig: Rig, tmp_path: Path) -> None:
    city, listed = tmp_path / "city", time.time_ns()
    city.mkdir()
    (city / "a.json").write_text("x" * 400)
    now = time.time()
    write_due(rig.folder, Due(now, 500, 0.0, 0, 4_000, str(city), listed, 8.0))
    assert rig.backlog.rows() == 500, "its source has looked just now"
    write_due(rig.folder, Due(now - 10, 500, 0.0, 0, 4_000, str(city), listed, 8.0))
    assert rig.backlog.rows() == 550
    write_due(rig.folder, Due(now - 10, 500, 0.0, 0, 4_000, str(city), time.time_ns() + 10**9, 8.0))
    assert rig.backlog.rows() == 500, "what was listed is not counted again"
    write_due(rig.folder, Due(now - 10, 500, 0.0, 0, 4_000, "", listed, 8.0))
    assert rig.backlog.rows() == 500, "where it takes long to look, nobody else looks"


def test_rows_arrive_while_the_query_runs_and_at_most_all_of_a_recording(rig: Rig) -> None:
    write_due(rig.folder, Due(time.time() - 10, 100, 20.0, 40))
    assert 300 <= (rig.backlog.rows() or 0) <= 310
    assert rig.backlog.throttled() == 40
    write_note(rig.folder, "recording.json", {"rows": 150, "repeat": False})
    assert rig.backlog.rows() == 150
    rig.is_active = False
    assert rig.backlog.rows() == 100


def test_a_recording_is_empty_once_it_is_played(rig: Rig) -> None:
    write_note(rig.folder, "recording.json", {"rows": 150, "repeat": False})
    rig.begin(0, 100)
    rig.commit(0)
    assert not rig.backlog.is_empty()
    rig.begin(1, 150)
    rig.commit(1)
    assert rig.backlog.is_empty()


def test_rows_in_topics_wait_until_they_are_done(rig: Rig) -> None:
    rig.topics.append("topic")
    for number, rows in enumerate((10, 20)):
        file = rig.folder / f"{number}.arrow"
        file.write_bytes(b"")
        rig.exchange.publish("topic", number, 1, [(str(file), rows)], 0)
    assert (rig.backlog.rows(), rig.backlog.throttled()) == (30, 30)
    rig.exchange.done("topic", 0)
    assert rig.backlog.rows() == 20


def test_what_an_older_version_has_stored_is_not_read(rig: Rig) -> None:
    write_note(rig.folder, "due.json", {"at": 0.0, "rows": 5, "rows_per_s": 0.0, "held_back": 5})
    assert rig.backlog.rows() is None


def test_an_epoch_to_replay_was_begun_and_not_committed(rig: Rig) -> None:
    assert rig.checkpoint.epoch_to_replay() is None
    rig.begin(0, 1)
    assert rig.checkpoint.epoch_to_replay() == 0
    rig.commit(0)
    assert (rig.checkpoint.epoch_to_replay(), rig.checkpoint.last_committed()) == (None, 0)
    rig.begin(1, 2)
    assert (rig.checkpoint.epoch_to_replay(), rig.checkpoint.offsets(1, "rows")) == (1, [2])
