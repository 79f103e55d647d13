"""The journal: all or none, durable when it returns, refused when damaged."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.store.entries import (
    Acknowledged,
    CommittedOutput,
    Delivered,
    Entry,
    EpochCommitted,
    FragmentBegun,
    OutputKind,
    SnapshotPublished,
    StagedRows,
    Target,
    UsageChanged,
    decoded_entry,
    encoded_entry,
)
from headgate.store.journal import Journal, create_journal, read_journal

COMMIT = EpochCommitted(
    "f-1",
    3,
    (2,),
    (
        CommittedOutput(Target(OutputKind.SINK, "s", 2), (StagedRows("a.json", 5), StagedRows("b.json", 1))),
        CommittedOutput(Target(OutputKind.TOPIC, "t", 2), (StagedRows("c.arrow", 9),), 4, 1_000),
        CommittedOutput(Target(OutputKind.LETTERS, "l", 2), (StagedRows("d.arrow", 1),), reasons=("näive\n",)),
    ),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_journal(tmp_path / "journal")
    return tmp_path / "journal"


def _snapshot(number: int) -> SnapshotPublished:
    return SnapshotPublished(number, {"number": number, "dataflows": {"a": "x" * number}})


def _numbers(path: Path) -> list[int]:
    return [entry.number for _, entry in read_journal(path, SnapshotPublished)]


def test_entries_come_back_as_they_were() -> None:
    import json

    entries: list[Entry] = [
        COMMIT,
        _snapshot(3),
        Acknowledged("r", "f", 200, {"snapshot": 3}, 1.5),
        FragmentBegun("f", 3, "1", {"t": -1}, 32),
        UsageChanged(7),
    ]
    for entry in entries:
        assert b"\n" not in encoded_entry(entry)
        assert decoded_entry(type(entry).__name__, json.loads(encoded_entry(entry))) == entry


def test_what_was_appended_is_there_when_it_is_opened_again(path: Path) -> None:
    journal = Journal(path)
    assert journal.latest(SnapshotPublished) is None
    first = journal.append(_snapshot(1), Acknowledged("r", "f", 200, {}, 0.0))
    second = journal.append(COMMIT)
    journal.append(_snapshot(2), durable=False)
    for opened in (journal, Journal(path)):
        assert opened.latest(SnapshotPublished) == _snapshot(2)
        assert opened.latest(SnapshotPublished, "1") == _snapshot(1)
        assert opened.latest(EpochCommitted, "f-1") == COMMIT
        assert opened.latest(Acknowledged, "q") is None
        assert list(opened.every(SnapshotPublished)) == [_snapshot(1), _snapshot(2)]
        assert [position for position, _ in opened.read(EpochCommitted)] == [second]
        assert list(opened.read(SnapshotPublished, since=first)) == [(second + 1, _snapshot(2))]


def _filled(folder: Path) -> tuple[Path, list[tuple[int, int]]]:
    """A journal; and for each number of snapshots that were acknowledged, the size of the file then."""
    path = folder / "journal"
    create_journal(path)
    journal = Journal(path)
    sizes = []
    for number in range(1, 5):
        journal.append(_snapshot(number), Delivered("f", number))
        sizes.append((number, journal.size))
    journal.close()
    return path, sizes


def _opened(path: Path) -> list[int] | None:
    """The snapshots that a journal gives; nothing if it is refused."""
    try:
        return _numbers(path)
    except InputError as error:
        refusal = error
    assert refusal.condition == "STATE_DAMAGED"
    assert str(path.parent) in refusal.message
    return None


def test_cut_at_any_byte_it_holds_all_that_was_acknowledged_or_is_refused(tmp_path: Path) -> None:
    path, sizes = _filled(tmp_path)
    whole = path.read_bytes()
    mark = path.with_name("journal.mark")
    for acknowledged, size in [(0, None), sizes[1], sizes[3]]:
        for cut in range(len(whole) + 1):
            path.write_bytes(whole[:cut])
            mark.write_bytes(b"%020d\n" % (acknowledged + 1 if size else 0))
            opened = _opened(path)
            if size is not None and cut < size:
                assert opened is None
            elif opened is not None:
                assert opened == [number for number, end in sizes if end <= cut]
                assert len(opened) >= acknowledged
                if cut % 50 == 0:
                    Journal(path).close()
                    assert _opened(path) == opened


@given(at=st.integers(0, 10_000), noise=st.binary(min_size=1, max_size=40), acknowledged=st.integers(0, 4))
@settings(max_examples=150, deadline=None)
def test_noise_anywhere_is_refused_or_was_acknowledged_to_nobody(
    tmp_path_factory: pytest.TempPathFactory, at: int, noise: bytes, acknowledged: int
) -> None:
    path, _ = _filled(tmp_path_factory.mktemp("journal"))
    whole = path.read_bytes()
    at %= len(whole)
    path.write_bytes(whole[:at] + noise + whole[at + len(noise) :])
    path.with_name("journal.mark").write_bytes(b"%020d\n" % (acknowledged + 1))
    opened = _opened(path)
    if opened is not None:
        assert opened == list(range(1, len(opened) + 1))
        assert len(opened) >= acknowledged


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 21, b"-", b"noise\n"])
def test_a_mark_that_holds_no_position_is_refused_and_may_be_removed(path: Path, content: bytes) -> None:
    Journal(path).append(_snapshot(1))
    path.with_name("journal.mark").write_bytes(content)
    assert _opened(path) is None
    path.with_name("journal.mark").unlink()
    assert _opened(path) == [1]


def test_an_empty_or_missing_journal_is_refused(path: Path) -> None:
    path.write_bytes(b"")
    assert _opened(path) is None
    path.unlink()
    assert _opened(path) is None


def test_after_a_cut_it_goes_on(tmp_path: Path) -> None:
    path, sizes = _filled(tmp_path)
    path.write_bytes(path.read_bytes()[: sizes[-1][1] - 3])
    path.with_name("journal.mark").unlink()
    journal = Journal(path)
    journal.append(_snapshot(9))
    assert _numbers(path) == [1, 2, 3, 9]
    assert Journal(path).latest(SnapshotPublished) == _snapshot(9)


def test_many_append_at_once(path: Path) -> None:
    journal = Journal(path)

    def work(first: int) -> None:
        for number in range(first, first + 50):
            journal.append(_snapshot(number), Delivered("f", number))
            assert journal.latest(SnapshotPublished, str(number)) is not None

    threads = [threading.Thread(target=work, args=(1 + 50 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(_numbers(path)) == list(range(1, 401))
    positions = [position for position, _ in journal.read(SnapshotPublished)]
    assert positions == sorted(set(positions))


WRITER = """
import sys
from pathlib import Path
from headgate.store.entries import SnapshotPublished
from headgate.store.journal import Journal

journal = Journal(Path(sys.argv[1]))
for number in range(1, 100_000):
    journal.append(SnapshotPublished(number, {"text": "x" * (number % 5_000)}))
    print(number, flush=True)
    if number % 40 == 0:
        journal.compact(lambda entry: entry.number > number - 10)
"""


def test_killed_at_any_moment_it_holds_what_was_acknowledged(path: Path) -> None:
    acknowledged = 0
    for after in (5, 37, 44, 90):
        path.with_name("journal.mark").unlink()
        create_journal(path)
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            acknowledged = int(line)
            if acknowledged >= after:
                process.kill()
                break
        acknowledged = int(([str(acknowledged), *process.stdout.read().split()])[-1])
        process.wait()
        process.stdout.close()
        journal = Journal(path)
        last = journal.latest(SnapshotPublished)
        assert last is not None
        assert acknowledged <= last.number <= acknowledged + 1
        journal.close()


def test_compaction_keeps_what_it_is_asked_to_and_positions(path: Path) -> None:
    journal = Journal(path)
    for number in range(1, 6):
        last = journal.append(_snapshot(number), Delivered("f", number))
    before = dict(journal.read(SnapshotPublished))
    size = journal.size
    asked: list[Entry] = []

    def keep(entry: Entry) -> bool:
        asked.append(entry)
        return isinstance(entry, SnapshotPublished) and entry.number == 2

    journal.compact(keep)
    assert [one for one in asked if isinstance(one, Delivered)] == [Delivered("f", 5)]
    assert journal.size < size
    for opened in (journal, Journal(path)):
        assert opened.position == last
        assert list(opened.read(SnapshotPublished)) == [(p, e) for p, e in before.items() if e.number == 2]
        assert opened.latest(Delivered, "f") is None
    assert journal.append(_snapshot(7)) == last + 1
    assert _numbers(path) == [2, 7]


def test_compaction_keeps_every_entry_without_a_key(path: Path) -> None:
    journal = Journal(path)
    for number in range(1, 6):
        journal.append(UsageChanged(number), Delivered("f", number))
    journal.compact(lambda _: True)
    assert [entry.at_s for _, entry in Journal(path).read(UsageChanged)] == [1, 2, 3, 4, 5]
    assert [entry.epoch for _, entry in Journal(path).read(Delivered)] == [5]


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_compaction_that_fails_leaves_the_journal_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    journal = Journal(path)
    journal.append(_snapshot(1))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(call, fail)
        with pytest.raises(OSError, match="No space"):
            journal.compact(lambda _: False)
    journal.append(_snapshot(2))
    assert _numbers(path) == [1, 2]
    assert Journal(path).latest(SnapshotPublished) == _snapshot(2)


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_fails_leaves_nothing_and_the_next_one_goes_on(path: Path) -> None:
    journal = Journal(path)
    journal.append(_snapshot(1))
    size = journal.size
    with _largest_file(size + 20), pytest.raises(OSError, match="too large"):
        journal.append(_snapshot(2), Acknowledged("r", "f", 200, {}, 0.0))
    assert path.stat().st_size == size
    assert journal.latest(SnapshotPublished) == _snapshot(1)
    journal.append(_snapshot(3))
    assert _numbers(path) == [1, 3]
    assert Journal(path).latest(Acknowledged, "r") is None


def test_closing_again_does_nothing(path: Path) -> None:
    journal = Journal(path)
    journal.close()
    journal.close()
