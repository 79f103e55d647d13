"""Reading a file, ready to be submitted."""

from __future__ import annotations

from pathlib import Path

from headgate.service.load import load
from headgate.sharing.signature import sign
from headgate.tasks.registry import default_registry
from tests.samples import DATAFLOW, TEXTS


def test_a_dataflow_without_duplicates_is_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(TEXTS["yaml"], encoding="utf-8")
    loaded = load(path, default_registry())
    assert loaded.dataflow == loaded.written == DATAFLOW
    assert loaded.signatures == sign(DATAFLOW)
    assert loaded.notices == ()


def test_duplicates_are_left_out_with_a_notice_at_their_line(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    lines = ["tasks:", "- {id: a, type: rate}", "- {id: b, type: rate}", "- {id: c, type: write_console, inputs: [b]}"]
    path.write_text("\n".join(lines), encoding="utf-8")
    loaded = load(str(path), default_registry())
    assert [task.id for task in loaded.written.tasks] == ["a", "b", "c"]
    assert [task.id for task in loaded.dataflow.tasks] == ["a", "c"]
    assert [str(stream) for stream in loaded.dataflow.streams] == ["a:out -> c:in"]
    (unread, duplicate) = loaded.notices
    assert (unread.condition, unread.task) == ("UNREAD_OUTPUT", "a")
    assert (duplicate.condition, duplicate.place.line, duplicate.task) == ("DUPLICATE_TASK", 3, "b")
