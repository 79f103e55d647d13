"""The driver's part of the file source, without Spark: each file once and in order, in bounded space."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from headgate.runtime.file_source.batches import Span, parts_of
from headgate.runtime.file_source.driver import FileBatches, Offset
from headgate.runtime.file_source.listing import FileListing, SourceFile
from headgate.runtime.file_source.memory import GRACE_NS, ReadFilesMemory
from headgate.runtime.file_source.read_until import ReadUntil, clear_but_bound
from headgate.runtime.file_source.source import FileReader
from headgate.runtime.io.broken_records import broken_records
from headgate.tasks.formats.files import read_file
from headgate.tasks.source_folder import read_note, write_note
from headgate.tasks.sources import ReadFiles

SCHEMA = pa.schema([("value", pa.string())])
NOTHING: Offset = {"rows": 0, "batch": 0}


def put(folder: Path, name: str, lines: list[str], modified_s: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    os.utime(hidden, (modified_s, modified_s))
    hidden.rename(folder / name)


def rows_of(batches: FileBatches, start: Offset, end: Offset, parts: int = 3) -> list[str]:
    """What workers read of a batch, in order."""
    spans = [span for n in range(start["batch"], end["batch"]) for span in batches.plan(n + 1).spans]
    rows = []
    for part in parts_of(spans, parts):
        for span in part:
            for some in read_file(span.path, "text", SCHEMA, first=span.first, last=span.last):
                rows += some.rows.column(0).to_pylist()
    return rows


def source(path: Path | str, **options: object) -> ReadFiles:
    return ReadFiles.model_validate({"path": str(path), "format": "text", **options})


@pytest.mark.parametrize("seed", range(6))
def test_each_line_once_and_in_order_whatever_is_cut_and_killed(tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    state.mkdir()
    after = rnd.choice(["keep", "delete"])
    options = source(folder, files_per_batch=rnd.choice([None, 3]), after=after)
    batches, at, number = FileBatches(options, state), NOTHING, 0
    read: list[str] = []
    wanted: list[str] = []
    for _ in range(30):
        arrived = []
        for _ in range(rnd.choice([0, 1, 5])):
            lines = [f"{number}-{n} " + "x" * rnd.randrange(50) for n in range(rnd.choice([1, 3, 40]))]
            modified_s = 1_000.0 + rnd.randrange(5)
            put(folder, f"{rnd.randrange(1_000):03d}-{number}", lines, modified_s)
            arrived.append((modified_s, sorted(folder.iterdir())[0].parent / f"{number}", lines))
            number += 1
        write_note(state, "limit.json", rnd.choice([None, None, 5, 30]))
        while (end := batches.next(at)) != at:
            if rnd.random() < 0.2:  # killed before Spark has heard of it, or after: it is planned again, or run again
                batches = FileBatches(options, state)
                end = batches.next(at) if rnd.random() < 0.5 else end
            first = rows_of(batches, at, end)
            assert rows_of(FileBatches(options, state), at, end, parts=1) == first
            read += first
            at = end
            if rnd.random() < 0.2:
                batches = FileBatches(options, state)
        wanted += _lines(arrived)
    assert sorted(read) == sorted(wanted)
    assert len(set(read)) == len(read)
    for name in {line.split("-")[0] for line in read}:
        of_file = [int(line.split("-")[1].split(" ")[0]) for line in read if line.split("-")[0] == name]
        assert of_file == sorted(of_file)


def _lines(arrived: list[tuple[float, Path, list[str]]]) -> list[str]:
    return [line for _, _, lines in arrived for line in lines]


def test_what_waits_is_read_in_the_order_of_modification_and_name(tmp_path: Path) -> None:
    names = [("b", 5.0), ("a", 5.0), ("c", 1.0), ("d", 9.0)]
    for name, modified_s in names:
        put(tmp_path / "in", name, [name], modified_s)
    batches = FileBatches(source(tmp_path / "in", files_per_batch=3), tmp_path)
    first = batches.next(NOTHING)
    assert rows_of(batches, NOTHING, first) == ["c", "a", "b"]
    put(tmp_path / "in", "e", ["e"], 2.0)
    second = batches.next(first)
    assert rows_of(batches, first, second) == ["e", "d"]
    assert batches.next(second) == second


def test_bytes_that_wait_are_known_and_rows_are_estimated(tmp_path: Path) -> None:
    put(tmp_path / "in", "a", ["x" * 9] * 100, 1.0)
    put(tmp_path / "in", "b", ["x" * 9] * 50, 2.0)
    write_note(tmp_path, "admitted.json", 30)
    batches = FileBatches(source(tmp_path / "in"), tmp_path)
    end = batches.next(NOTHING)
    assert end == {"rows": 30, "batch": 1}
    due = read_note(tmp_path, "due.json")
    assert (due["rows"], due["throttled"], due["bytes"]) == (150, 120, 1_200)
    assert len(rows_of(batches, NOTHING, end)) == 30
    write_note(tmp_path, "admitted.json", None)
    assert batches.next(end) == {"rows": 150, "batch": 2}


def test_a_file_that_grows_or_is_replaced_is_not_read_again(tmp_path: Path) -> None:
    put(tmp_path / "in", "a", ["one"], 1.0)
    batches = FileBatches(source(tmp_path / "in"), tmp_path)
    end = batches.next(NOTHING)
    with (tmp_path / "in" / "a").open("a") as file:
        file.write("two\n")
    assert rows_of(batches, NOTHING, end) == ["one"], "as long as it was when it was planned"
    assert batches.next(end) == end
    put(tmp_path / "in", "a", ["another"], 7.0)
    assert batches.next(end) == end
    assert FileBatches(batches.options, tmp_path).next(end) == end


def test_files_are_moved_or_deleted_once_their_batch_is_done(tmp_path: Path) -> None:
    for after, more in (("delete", {}), ("move", {"move_to": str(tmp_path / "done")})):
        folder, state = tmp_path / after, tmp_path / f"state-{after}"
        state.mkdir()
        put(folder, "a", ["1"], 1.0)
        batches = FileBatches(source(folder, after=after, **more), state)
        first = batches.next(NOTHING)
        assert (folder / "a").exists()
        put(folder, "b", ["2"], 2.0)
        second = batches.next(first)
        assert [file.name for file in folder.iterdir()] == ["b"]
        put(folder, "a", ["again"], 3.0)
        third = batches.next(second)
        assert rows_of(batches, second, third) == ["again"], "a new file, under the name of one that is gone"
        put(folder, "a", ["anew"], 4.0)
        assert batches.next(third) == third, "replaced before it was removed: it may have been read, and stays"
        assert [file.name for file in folder.iterdir()] == ["a"]
    assert sorted(file.name for file in (tmp_path / "done").iterdir()) == ["a", "b"]


def test_one_file_patterns_and_folders_within_folders(tmp_path: Path) -> None:
    put(tmp_path / "in", "a.txt", ["a"], 3.0)
    put(tmp_path / "in" / "day=1", "b.txt", ["b"], 2.0)
    put(tmp_path / "in" / "day=2", "c.csv", ["c"], 1.0)
    put(tmp_path / "in", "_hidden", ["no"], 1.0)
    cases = {"in": "cba", "in/a.txt": "a", "in/*.txt": "a", "in/day=*": "cb", "in/**/*.txt": "ba", "in/*/c.*": "c"}
    for number, (path, wanted) in enumerate(cases.items()):
        state = tmp_path / f"state{number}"
        state.mkdir()
        batches = FileBatches(source(tmp_path / path), state)
        write_note(state, "admitted.json", 1)
        first = batches.next(NOTHING)
        due = read_note(state, "due.json")
        assert (due["rows"], due["throttled"], due["bytes"]) == (len(wanted), len(wanted) - 1, 2 * len(wanted) - 2)
        write_note(state, "admitted.json", None)
        rest = [] if len(wanted) == 1 else rows_of(batches, first, batches.next(first))
        assert "".join([*rows_of(batches, NOTHING, first), *rest]) == wanted, path


def test_any_url_that_fsspec_knows(tmp_path: Path) -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    for name, text in (("a.txt", "1\n2\n"), ("deep/b.txt", "3\n"), (".c.txt", "no\n")):
        with system.open(f"/files/{name}", "wb") as file:
            file.write(text.encode())
        time.sleep(0.001)
    for path in ("memory://files", "memory://files/**/*.txt"):
        state = tmp_path / str(len(path))
        state.mkdir()
        batches = FileBatches(source(path, after="delete" if "*" in path else "keep"), state)
        end = batches.next(NOTHING)
        assert rows_of(batches, NOTHING, end) == ["1", "2", "3"], path
        assert batches.next(end) == end
    assert not system.exists("/files/a.txt")
    put(tmp_path / "in", "a", ["x"], 1.0)
    batches = FileBatches(source(f"file://{tmp_path}/in"), tmp_path)
    assert rows_of(batches, NOTHING, batches.next(NOTHING)) == ["x"]


def read_of(reader: FileReader, end: Offset) -> list[str]:
    """What workers make of the first batch."""
    parts = reader.partitions(NOTHING, end)
    return [v for part in parts for rows in reader.read(part) for v in rows.column(0).to_pylist()]


def reader_of(path: Path, state: Path, parts: int, on_error: str = "dead_letter") -> FileReader:
    about = {"task": source(path).model_dump_json(), "columns": StructType().add("value", "string").json()}
    return FileReader({**about, "folder": str(state), "parts": str(parts), "on_error": on_error, "began_us": "0"})


@pytest.mark.parametrize("parts", [1, 3])
def test_files_that_change_between_planning_and_reading(tmp_path: Path, parts: int) -> None:
    lines = [f"{n:07d}" for n in range(1_000_000)]  # 8 MB: three parts, if there may be so many
    long, short = [tmp_path / "in" / name for name in ("long", "short")]
    put(tmp_path / "in", "long", lines, 1.0)
    put(tmp_path / "in", "short", ["gone"], 2.0)
    reader = reader_of(tmp_path / "in", tmp_path, parts)
    end = reader.latestOffset(NOTHING, ReadAllAvailable())
    assert len(reader.partitions(NOTHING, end)) == parts
    assert read_of(reader, end) == [*lines, "gone"]
    short.unlink()
    with long.open("a") as file:
        file.write("more\n")
    assert read_of(reader, end) == [*lines, "more"]
    ((letters, count),) = broken_records(tmp_path, 1)
    assert (count, "No such file" in Path(letters).read_bytes().decode(errors="replace")) == (1, True)
    put(tmp_path / "in", "long", ["another"], 3.0)
    assert read_of(reader, end) == ["another"]
    assert read_of(reader_of(tmp_path / "in", tmp_path, parts, "fail"), end) == ["another"], "no use to wait for a file"


def test_names_that_look_like_patterns(tmp_path: Path) -> None:
    names = ["[x].json", "a b.json", "a*.json", "ä.json", os.fsdecode(b"\xff.json")]
    for name in names:
        put(tmp_path / "in", name, ["one"], 1.0)
    for number, name in enumerate(names[:4]):
        (tmp_path / str(number)).mkdir()
        batches = FileBatches(source(tmp_path / "in" / name), tmp_path / str(number))
        assert len(rows_of(batches, NOTHING, batches.next(NOTHING))) == 1, name
    batches = FileBatches(source(tmp_path / "in"), tmp_path)
    assert len(rows_of(batches, NOTHING, batches.next(NOTHING))) == len(names)


PER_BATCH = 2_500


def _arriving(folder: Path) -> Callable[[str, Callable[[str], bool]], FileListing]:
    """A folder into which files come between listings, while somebody clears away those of the listing before."""
    batch = [-1]

    def list_files(path: str, is_read: Callable[[str], bool]) -> FileListing:
        batch[0] += 1
        numbers = range(max(batch[0] - 1, 0) * PER_BATCH, (batch[0] + 1) * PER_BATCH)
        names = ((n, f"{folder}/{n // PER_BATCH}/{n % PER_BATCH}.txt") for n in numbers)
        new = [(10**18 + n * 10**9, name) for n, name in names if not is_read(name)]
        return FileListing([SourceFile(at, name, 6, at) for at, name in new], 10**18 + numbers.stop * 10**9)

    return list_files


def _batch(batches: FileBatches, at: Offset) -> tuple[Offset, float]:
    """Plan a batch and read it; returns what comes after it, and the CPU seconds of both."""
    began = time.process_time()
    end = batches.next(at)
    assert len(rows_of(batches, at, end)) == PER_BATCH
    return end, time.process_time() - began


def test_after_a_million_files_little_is_kept_and_a_batch_takes_what_it_took(tmp_path: Path) -> None:
    for number in range(PER_BATCH):
        put(tmp_path / "real", f"{number}.txt", ["12345"], 1.0)
    for number in range(1_000_000 // PER_BATCH + 50):
        (tmp_path / str(number)).symlink_to(tmp_path / "real")
    (tmp_path / "fresh").mkdir()
    (tmp_path / "old").mkdir()
    fresh = FileBatches(source("/data/in"), tmp_path / "fresh", _arriving(tmp_path))
    old = FileBatches(source("/data/in"), tmp_path / "old", _arriving(tmp_path))
    at, largest = NOTHING, 0
    for _ in range(1_000_000 // PER_BATCH):
        at = old.next(at)
        assert len(old.plan(at["batch"]).spans) == PER_BATCH
        largest = max(largest, sum(file.stat().st_size for file in old.home.iterdir()))
    assert largest <= 5_000_000
    ends, took = [NOTHING, at], ([], [])  # type: tuple[list[Offset], tuple[list[float], list[float]]]
    for _ in range(12):
        for which, batches in enumerate((fresh, old)):
            ends[which], seconds = _batch(batches, ends[which])
            took[which].append(seconds)
    late, early = map(statistics.median, reversed(took))
    assert late <= 1.1 * early, f"{late / early:.2f}"
    again = FileBatches(old.options, tmp_path / "old", old.list_files)
    assert len(again.plan(again.next(ends[1])["batch"]).spans) == PER_BATCH


def test_what_is_forgotten_is_known_by_its_time() -> None:
    memory, grace_s = ReadFilesMemory(most=100), GRACE_NS // 10**9

    def file(number: int, came_s: int) -> SourceFile:
        return SourceFile(number, f"f{number}", 1, came_s * 10**9)

    def seen(which: SourceFile) -> bool:
        return memory.is_remembered(which.path) or memory.is_read(which)

    # A backlog of 1,000 files that came all at once, read in order, 50 at a time.
    for first in range(0, 1_000, 50):
        listed_s = 1_000 + first
        last = (first + 49, f"f{first + 49}")
        memory.add([f"f{n}" for n in range(first, first + 50)], listed_s * 10**9, last, all_read=first == 950)
        assert all(seen(file(n, 500)) for n in range(first + 50))
        assert not any(seen(file(n, 500)) for n in range(first + 50, 1_000))
    assert len(memory.to_bytes()) < 100 * 8 + 20_000
    assert not seen(file(3, 5_000)), "as old as others, but it came late"
    memory = ReadFilesMemory.from_bytes(memory.to_bytes(), most=100)
    assert all(seen(file(n, 500)) for n in range(1_000))
    assert not seen(file(2_000, 1_951 - grace_s + 1)), "it may have been invisible when all others were read"


def test_parts_are_runs_in_order() -> None:
    sizes = [(9_000_000, True), (5, True), (9_000_000, False)]
    spans = [Span(str(n), n, size, 0, size, cuts) for n, (size, cuts) in enumerate(sizes)]
    parts = parts_of(spans, 4)  # the whole has 18,000,005 bytes
    assert [[(s.path, s.first, s.last) for s in part] for part in parts] == [
        [("0", 0, 4_500_002)],
        [("0", 4_500_002, 9_000_000), ("1", 0, 4)],
        [("1", 4, 5), ("2", 0, 9_000_000)],
    ]


def test_a_bound_that_is_settled_outlasts_a_new_beginning(tmp_path: Path) -> None:
    bound = ReadUntil(ReadFilesMemory())
    bound.store(tmp_path / "files")
    for name in ("files/plan-1.json", "due.json", ".hidden", "checkpoint/offsets/0"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    clear_but_bound(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["files", "files/until"]
    assert ReadUntil.stored(tmp_path / "files") is not None
