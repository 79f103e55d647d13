"""Chains of files against a dict: epochs, merges, resizes, replays and lost attempts, without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.chain_work import HASH, UNTIL, Axis, StateTable
from headgate.runtime.chains.files import PartReader, mapped, remove_others, written
from headgate.runtime.chains.fold import FoldedPart, Folding, fold_part
from headgate.runtime.chains.merging import Merge, due_merges, merged, newest_to_merge, with_merged
from headgate.runtime.chains.ranges import appended, empty, living, resliced
from headgate.store.chain_entries import LAST_HASH, ChainKept, ChainPart
from headgate.store.entries import EpochCommitted, decoded_entry, encoded_entry
from tests.runtime.chains.toy import KERNEL, SIDE, SIZE, TABLE, started

CHAIN = started()
AXES = {"windows": "event"}
KEYS = [None, "", "a", "b", "c", "dé", "e" * 40]
LATE_BY = 2_000_000

Row = tuple[str | None, int, int]

rows = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 12 * SIZE), st.integers(0, 9)), max_size=12)
"""Rows of an epoch: many windows, so that some rows are late, and epochs without rows."""

steps = st.lists(
    st.one_of(
        st.tuples(st.just("epoch"), rows),
        st.tuples(st.just("lost"), rows),
        st.tuples(st.just("merge"), st.none()),
        st.tuples(st.just("resize"), st.integers(1, 8)),
        st.tuples(st.just("collect"), st.none()),
    ),
    max_size=40,
)


class Engine:
    """What an engine does with a chain, one step at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.outputs = folder / "chains", folder / "outputs"
        self.folder.mkdir()
        self.outputs.mkdir()
        self.kept = ChainKept("task@1", "form", (None,), empty(2))
        self.epochs = 0
        self.attempts = 0
        self.put_out: list[tuple[int, str | None, int, int]] = []

    def fold(self, some: list[Row]) -> list[FoldedPart]:
        self.attempts += 1
        folding = Folding(CHAIN, KERNEL, None, self.kept, self.epochs, 0)
        columns = zip(*some, strict=True) if some else [[], [], []]
        table = pa.table([pa.array(list(c), f.type) for c, f in zip(columns, SIDE, strict=True)], schema=SIDE)
        return [
            fold_part(folding, [table], part, self.folder, self.outputs, f"{self.epochs}-{at}-{self.attempts}")
            for at, part in enumerate(self.kept.parts)
        ]

    def epoch(self, some: list[Row]) -> None:
        made = self.fold(some)
        assert not any(one.error for one in made)
        assert len({one.seen for one in made}) == 1, "all ranges have the same watermark"
        parts = tuple(appended(part, one.files) for part, one in zip(self.kept.parts, made, strict=True))
        self.kept = living(ChainKept(self.kept.life, self.kept.form, made[0].seen, parts, made[0].dead), AXES)
        for one in made:
            if one.output:
                self.put_out += [(r["end"], r["k"], r["n"], r["v"]) for r in mapped(Path(one.output)).to_pylist()]
        self.epochs += 1

    def merge(self) -> None:
        before = self.state()
        due = due_merges(self.kept, AXES)
        self.kept = with_merged(self.kept, [merged(one, CHAIN, self.folder) for one in due])
        dead = self.kept.dead.get("event")
        assert self.state() == {key: sums for key, sums in before.items() if dead is None or key[0] > dead} or not due

    def state(self) -> dict[tuple[int, str | None], tuple[int, int]]:
        sums: dict[tuple[int, str | None], tuple[int, int]] = defaultdict(lambda: (0, 0))
        for part in self.kept.parts:
            for row in PartReader(self.folder, CHAIN.tables, part).rows("windows").to_pylist():
                assert part.low <= row[HASH] <= part.high
                n, v = sums[row[UNTIL], row["k"]]
                sums[row[UNTIL], row["k"]] = n + row["n"], v + row["v"]
        return dict(sums)


class Judge:
    """The same, kept in a dict."""

    def __init__(self) -> None:
        self.windows: dict[tuple[int, str | None], tuple[int, int]] = {}
        self.greatest: int | None = None
        self.put_out: list[tuple[int, str | None, int, int]] = []

    def epoch(self, some: list[Row]) -> None:
        before = None if self.greatest is None else self.greatest - LATE_BY
        for key, time, value in some:
            end = (time // SIZE + 1) * SIZE
            if before is None or end > before:
                n, v = self.windows.get((end, key), (0, 0))
                self.windows[end, key] = n + 1, v + value
        times = [time for _, time, _ in some]
        if times:
            self.greatest = max([*times, *([] if self.greatest is None else [self.greatest])])
        for end, key in list(self.windows):
            if self.greatest is not None and end <= self.greatest - LATE_BY:
                self.put_out.append((end, key, *self.windows.pop((end, key))))


@settings(max_examples=60, deadline=None)
@given(steps)
def test_whatever_happens_between_epochs_a_chain_holds_what_a_dict_holds(what: list[tuple[str, object]]) -> None:
    with TemporaryDirectory() as folder:
        engine, judge = Engine(Path(folder)), Judge()
        for step, given_to_it in what:
            if step == "epoch":
                engine.epoch(given_to_it)  # type: ignore[arg-type]
                judge.epoch(given_to_it)  # type: ignore[arg-type]
            elif step == "lost":
                engine.fold(given_to_it)  # type: ignore[arg-type]
            elif step == "merge":
                engine.merge()
            elif step == "resize":
                count = int(given_to_it)  # type: ignore[call-overload]
                engine.kept = ChainKept(
                    engine.kept.life, "form", engine.kept.seen, resliced(engine.kept.parts, count), engine.kept.dead
                )
            else:
                remove_others(engine.folder, engine.kept.files.__contains__)
            stored = decoded_entry("EpochCommitted", _as_json(engine.kept))
            assert isinstance(stored, EpochCommitted)
            (engine.kept,) = stored.chains
        assert sorted(engine.put_out, key=repr) == sorted(judge.put_out, key=repr)
        dead = engine.kept.dead.get("event", -1)
        assert {key: sums for key, sums in engine.state().items() if key[0] > dead} == judge.windows


def _as_json(kept: ChainKept) -> object:
    import json

    return json.loads(encoded_entry(EpochCommitted("f-1", 3, (1,), chains=(kept,))))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300))
def test_files_stay_few_and_rows_are_written_again_seldom(epochs: int) -> None:
    """As many files as the logarithm of the epochs, and each row written as often, at most."""
    sizes: list[int] = []
    again = 0
    for _ in range(epochs):
        sizes.append(1)
        newest = newest_to_merge(sizes)
        if newest:
            again += sum(sizes[-newest:])
            sizes[-newest:] = [sum(sizes[-newest:])]
    assert len(sizes) <= 7
    assert again <= epochs * (2 + np.log2(epochs))


STATE = pa.schema([(HASH, pa.uint64()), (UNTIL, pa.int64()), ("v", pa.int64())])
PLAIN = StateTable("plain", STATE, Axis.EVENT)


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, LAST_HASH) | st.integers(0, 20), st.integers(0, 50)), min_size=1, max_size=30
        ),
        max_size=4,
    ),
    st.lists(st.integers(0, LAST_HASH) | st.integers(0, 20), max_size=10),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(1, 5),
)
@settings(max_examples=40, deadline=None)
def test_a_reader_gives_at_least_what_is_asked_for_and_nothing_twice(
    files: list[list[tuple[int, int]]], hashes: list[int], after: int, until: int, count: int
) -> None:
    with TemporaryDirectory() as name:
        folder, number = Path(name), iter(range(10_000))
        part = ChainPart()
        everything = []
        for some in files:
            table = [(h, u, next(number)) for h, u in sorted(some)]
            everything += table
            arrays = [pa.array(list(c), f.type) for c, f in zip(zip(*table, strict=True), STATE, strict=True)]
            part = appended(part, {"plain": written(folder, "f", pa.table(arrays, schema=STATE))})
        wanted = np.unique(np.array(hashes, np.uint64))
        some_rows: list[tuple[int, int, int]] = []
        of: list[tuple[int, int, int]] = []
        for one in resliced([part], count):
            reader = PartReader(folder, [PLAIN], one)
            some_rows += _tuples(reader.rows("plain", after, until))
            of += _tuples(reader.rows_of("plain", wanted))
        assert len(some_rows) == len(set(some_rows))
        assert len(of) == len(set(of))
        assert {row for row in everything if after < row[1] <= until} <= set(some_rows) <= set(everything)
        assert {row for row in everything if row[0] in set(hashes)} <= set(of) <= set(everything)


def _tuples(table: pa.Table) -> Iterator[tuple[int, int, int]]:
    return zip(*(table.column(at).to_pylist() for at in range(3)), strict=True)


def test_what_a_fold_raises_is_a_result_and_leaves_no_file(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    made = engine.fold([("a", 1, -1)])
    assert [one.error for one in made if one.error] == ["ValueError: no such value"]
    assert not list(engine.folder.iterdir())


def test_a_merge_of_files_that_have_changed_meanwhile_counts_for_nothing(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    for second in range(9):
        engine.epoch([("a", second, 1)])
    (due,) = due_merges(engine.kept, AXES)
    done = merged(due, CHAIN, engine.folder)
    before = engine.kept
    engine.kept = ChainKept(before.life, before.form, before.seen, resliced(before.parts, 3), before.dead)
    assert with_merged(engine.kept, [done]) == engine.kept
    assert with_merged(before, [done]) != before


def test_a_merge_of_dead_rows_leaves_nothing(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.epoch([("a", 1, 1)])
    (part,) = [part for part in engine.kept.parts if part.files]
    done = merged(Merge("task@1", TABLE.name, part, SIZE), CHAIN, engine.folder)
    assert done.file is None
    assert not any(part.files.get("windows") for part in with_merged(engine.kept, [done]).parts)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_ranges_cover_every_hash_once(count: int) -> None:
    parts = empty(count)
    assert (parts[0].low, parts[-1].high) == (0, LAST_HASH)
    assert all(one.high + 1 == other.low for one, other in pairwise(parts))
