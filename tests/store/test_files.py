"""Files that are whole or absent, and lines after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.store.files import append_line, read_json, write_json


def test_a_value_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    assert read_json(path) is None
    write_json(path, {"n": 1})
    with pytest.raises(TypeError):
        write_json(path, object())
    assert read_json(path) == {"n": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["value.json"]


def test_a_line_that_was_cut_short_does_not_spoil_the_next(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    append_line(path, "first", "answer")
    append_line(path, "second", "answer")
    path.write_bytes(path.read_bytes() + b"cut sh")
    append_line(path, "third", "answer")
    assert path.read_text(encoding="utf-8").splitlines() == ["first", "second", "cut sh", "third"]
