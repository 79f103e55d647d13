"""Dead letters are there once, bounded and counted, and can be read by anybody at any time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from headgate.cli.main import app
from headgate.model.on_error import OnError
from headgate.runtime.isolation.dead_letters import DeadLetters, Letters, read_letters


def staged(folder: Path, ids: Sequence[int], error: str | None = "ValueError: no") -> list[tuple[str, int]]:
    """A file of letters as an epoch stages it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}.arrow"
    kinds = pa.schema([("record", pa.string()), ("error", pa.string())])
    table = pa.Table.from_pylist([{"record": json.dumps({"id": n}), "error": error} for n in ids], schema=kinds)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return [(str(path), len(ids))]


def take(
    store: DeadLetters,
    files: list[tuple[str, int]],
    epoch: int,
    policy: OnError = OnError.DEAD_LETTER,
    reasons: Sequence[str] = (),
    name: str = "flow.task",
) -> None:
    store.take(Letters("0af3", name, ["flow", "other"], policy, "source-1", 7, epoch, files, reasons))


def ids(state: Path) -> list[int]:
    return [json.loads(letter.record)["id"] for letter in read_letters(state)]


def test_letters_are_kept_with_all_that_is_known(tmp_path: Path) -> None:
    store = DeadLetters(tmp_path / "dead_letters")
    take(store, staged(tmp_path / "s", [1]), 3)
    (letter,) = read_letters(tmp_path)
    assert (letter.task, letter.dataflows, letter.error) == ("flow.task", ("flow", "other"), "ValueError: no")
    assert (letter.record, letter.snapshot, letter.epoch) == ('{"id": 1}', 7, 3)


def test_an_epoch_that_is_delivered_again_adds_nothing(tmp_path: Path) -> None:
    for _ in range(2):  # the second time by an engine that was started anew
        store = DeadLetters(tmp_path / "dead_letters")
        take(store, staged(tmp_path / "s", [1, 2]), 3)
        take(store, staged(tmp_path / "s", [3]), 4)
    assert ids(tmp_path) == [1, 2, 3]
    assert store.left_out("0af3").dead_letters == 3


def test_killed_between_keeping_and_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DeadLetters(tmp_path / "dead_letters")
    files = staged(tmp_path / "s", [1, 2])

    def killed(folder: Path) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "_retain", killed)
    with pytest.raises(KeyboardInterrupt):
        take(store, files, 3)
    again = DeadLetters(tmp_path / "dead_letters")
    take(again, files, 3)
    assert ids(tmp_path) == [1, 2]
    assert again.left_out("0af3").dead_letters == 2
    assert not Path(files[0][0]).exists()


def test_the_oldest_go_and_are_counted(tmp_path: Path) -> None:
    store = DeadLetters(tmp_path / "dead_letters", most_rows=10)
    for epoch in range(8):
        take(store, staged(tmp_path / "s", [epoch * 3, epoch * 3 + 1, epoch * 3 + 2]), epoch)
        assert len(ids(tmp_path)) <= 10
    assert ids(tmp_path) == list(range(15, 24))
    left_out = store.left_out("0af3")
    assert (left_out.dead_letters, left_out.dropped) == (24, 15)
    take(store, staged(tmp_path / "s", range(100, 150)), 8)
    assert ids(tmp_path) == list(range(100, 110)), "of one that is too large alone, the beginning"
    left_out = store.left_out("0af3")
    assert (left_out.dead_letters, left_out.dropped) == (74, 64)


def test_bytes_are_bounded_too(tmp_path: Path) -> None:
    store = DeadLetters(tmp_path / "dead_letters", most_bytes=10_000)
    for epoch in range(30):
        take(store, staged(tmp_path / "s", [epoch], "x" * 2_000), epoch)
    sizes = [path.stat().st_size for path in (tmp_path / "dead_letters").rglob("*.arrow")]
    assert sum(sizes) <= 10_000
    assert ids(tmp_path)[-1] == 29


def test_skipped_rows_are_counted_and_not_kept(tmp_path: Path) -> None:
    store = DeadLetters(tmp_path / "dead_letters")
    take(store, staged(tmp_path / "s", [1, 2]), 3, OnError.SKIP)
    assert ids(tmp_path) == []
    left_out = DeadLetters(tmp_path / "dead_letters").left_out("0af3")
    assert (left_out.skipped, left_out.latest) == (2, "ValueError: no")


def test_letters_that_do_not_know_their_error_name_those_that_were_seen(tmp_path: Path) -> None:
    store = DeadLetters(tmp_path / "dead_letters")
    take(store, staged(tmp_path / "s", [1], None), 1, reasons=["DIVIDE_BY_ZERO"])
    take(store, staged(tmp_path / "s", [2], None), 2, reasons=["DIVIDE_BY_ZERO", "OVERFLOW"])
    take(store, staged(tmp_path / "s", [3], None), 3)
    assert [letter.error for letter in read_letters(tmp_path)] == [
        "not known for this row; the task has raised DIVIDE_BY_ZERO",
        "not known for this row; the task has raised DIVIDE_BY_ZERO; OVERFLOW",
        "not known",
    ], "never another row's error as if it were this one's"
    assert store.left_out("0af3").latest == "OVERFLOW"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["dead-letters", *arguments], catch_exceptions=True)
    return result.exit_code, result.output if result.exception is None else str(result.exception)


def test_the_command_shows_filters_and_exports(tmp_path: Path) -> None:
    (tmp_path / "version").write_text("2")
    assert run("--state", str(tmp_path)) == (0, "Dead letters: none\n")
    store = DeadLetters(tmp_path / "dead_letters")
    take(store, staged(tmp_path / "s", range(30)), 3)
    store.take(Letters("0bcd", "other.clean", ["other"], OnError.DEAD_LETTER, "o", 7, 1, staged(tmp_path / "s", [99])))
    status, told = run("--state", str(tmp_path))
    assert status == 0
    assert "newest 20 of 31" in told
    status, told = run("--state", str(tmp_path), "flow", "--json")
    assert [letter["record"]["id"] for letter in json.loads(told)["dead_letters"]] == list(range(30))
    for task in ("clean", "other.clean"):
        status, told = run("--state", str(tmp_path), "--task", task, "--json")
        assert [letter["record"] for letter in json.loads(told)["dead_letters"]] == [{"id": 99}]
    status, told = run("--state", str(tmp_path), "--export", str(tmp_path / "all.jsonl"))
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert (status, len(lines)) == (0, 31)
    assert set(json.loads(lines[0])) == {"record", "error", "task", "dataflows", "snapshot", "epoch", "at"}
    assert "exists" in run("--state", str(tmp_path), "--export", str(tmp_path / "all.jsonl"))[1]
    assert "did you mean 'other'?" in run("--state", str(tmp_path), "othr")[1]
    assert "not a state directory" in run("--state", str(tmp_path / "none"))[1]


def test_what_some_have_had_again_is_still_there_for_the_others(tmp_path: Path) -> None:
    store = DeadLetters(tmp_path / "dead_letters")
    called = {"flow": "task", "other": "step"}
    for epoch in (3, 4):
        letters = Letters("0af3", "flow.task", ["flow", "other"], OnError.DEAD_LETTER, "o", 7, epoch, [], (), called)
        store.take(replace(letters, files=staged(tmp_path / "s", [epoch])))
    first, second = store.of("flow", lambda task, name: (task, name) == ("0af3", "flow.task"))
    assert (first.records, second.dataflows) == (('{"id": 3}',), ("flow", "other"))
    for _ in range(2):  # the second time by an engine that was started anew
        store = DeadLetters(tmp_path / "dead_letters")
        store.settle("redrive-1", [("0af3", first.stem)], ["flow"])
    assert [(one.task, one.dataflows) for one in read_letters(tmp_path)] == [
        ("other.step", ("other",)),
        ("flow.task", ("flow", "other")),
    ]
    assert len(store.of("flow", lambda *_: True)) == 1
    assert store.left_out("0af3").redriven == 0
    for _ in range(2):
        store = DeadLetters(tmp_path / "dead_letters")
        store.settle("redrive-2", [("0af3", first.stem), ("0af3", second.stem)], ["flow", "other"])
    assert list(read_letters(tmp_path)) == []
    assert list((tmp_path / "dead_letters").rglob("*.arrow")) == []
    left_out = store.left_out("0af3")
    assert (left_out.dead_letters, left_out.redriven) == (2, 2)
    take(store, staged(tmp_path / "s", [5]), 5)
    assert ids(tmp_path) == [5], "an epoch after them adds its own"
