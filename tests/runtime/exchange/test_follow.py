"""Rows that have waited for a past follow it once, wherever the process ended."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headgate.runtime.compile.plan import later
from headgate.runtime.exchange.files import FileExchange


def put(exchange: FileExchange, folder: Path, topic: str, number: int) -> None:
    file = folder / f"{topic} {number}"
    file.write_text(f"{topic} {number}", encoding="utf-8")
    exchange.publish(topic, number, 7, [(str(file), 1)], 0)


def test_rows_follow_once_although_their_folder_was_half_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "exchange").mkdir()
    exchange = FileExchange(tmp_path / "exchange")
    put(exchange, tmp_path, "t", 0)
    for number in range(2):
        put(exchange, tmp_path, later("t"), number)
    assert exchange.waited_for() == {"t"}
    remove = shutil.rmtree

    def half_removed(folder: Path, **options: bool) -> None:
        if Path(folder).exists():
            (Path(folder) / "follow.json").unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("headgate.runtime.exchange.files.shutil.rmtree", half_removed)
        with pytest.raises(KeyboardInterrupt):
            exchange.follow("t")
    assert shutil.rmtree is remove
    exchange.follow("t")
    assert exchange.waited_for() == set()
    texts = [file.read_text(encoding="utf-8") for file in sorted((exchange.root / "t").glob("*.arrow"))]
    assert (exchange.head("t"), texts) == (2, ["t 0", f"{later('t')} 0", f"{later('t')} 1"])
