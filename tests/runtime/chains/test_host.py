"""The host of chains: epochs, merges beside them, kills between any two steps, resizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.names import Signature
from headgate.runtime.chains.files import PartReader, mapped
from headgate.runtime.chains.host import ChainHost, FoldedTask
from headgate.runtime.chains.jobs import ChainJobs, ChainTask
from headgate.store.chain_entries import ChainKept
from tests.runtime.chains.test_chains import Judge, Row, rows
from tests.runtime.chains.toy import KERNEL, SIDE, started

KNOWN = ChainTask("toy", "{}", (SIDE.serialize().to_pybytes(),))
TASK = Signature("task")


class Engine:
    """A fragment's commits, and a host that may be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commit: tuple[ChainKept, ...] = ()
        self.epoch = 0
        self.partitions: int | None = None
        self.chain = KERNEL, None, started()
        self.put_out: list[tuple[int, str | None, int, int]] = []
        self.start()

    def start(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.host = ChainHost(
            ChainJobs(self.folder / "chains", lambda _: self.chain), self.folder / "outputs", 2, self._offer
        )

    def _offer(self, work: Callable[[], None]) -> bool:
        self.waiting.append(work)
        return True

    def run(self, some: list[Row], *, killed: str = "") -> None:
        file = self.folder / f"in-{self.epoch}.arrow"
        columns = zip(*some, strict=True) if some else [[], [], []]
        table = pa.table([pa.array(list(c), f.type) for c, f in zip(columns, SIDE, strict=True)], schema=SIDE)
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, SIDE) as writer:
            writer.write_table(table)
        task = FoldedTask(TASK, f"{TASK}@1", KNOWN, ((str(file),),), self.partitions)
        folded = self.host.fold(self.epoch, self.commit, [task], lambda _: True)
        assert not folded.failed
        if killed == "merged meanwhile":
            self.merge()
        if killed == "before the commit":
            return self.start()
        self.commit = folded.kept
        for files in folded.outputs:
            for _, path in files:
                self.put_out += [(r["end"], r["k"], r["n"], r["v"]) for r in mapped(Path(path)).to_pylist()]
        self.epoch += 1
        if killed == "after the commit":
            return self.start()
        return self.host.tidy(self.commit)

    def state(self) -> list[dict[str, Any]]:
        tables = self.chain[2].tables
        (kept,) = self.commit
        readers = [PartReader(self.folder / "chains", tables, part) for part in kept.parts]
        return [row for reader in readers for row in reader.rows("windows").to_pylist()]

    def merge(self) -> None:
        while self.waiting:
            self.waiting.pop()()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("epoch"), rows),
        st.tuples(st.just("before the commit"), rows),
        st.tuples(st.just("after the commit"), rows),
        st.tuples(st.just("merged meanwhile"), rows),
        st.tuples(st.just("merge"), st.none()),
        st.tuples(st.just("resize"), st.integers(1, 5)),
    ),
    max_size=50,
)


@settings(max_examples=25, deadline=None)
@given(steps)
def test_a_host_puts_out_each_window_once_whatever_is_killed(what: list[tuple[str, Any]]) -> None:
    with TemporaryDirectory() as folder:
        engine, judge = Engine(Path(folder)), Judge()
        for step, given_to_it in what:
            if step == "merge":
                engine.merge()
            elif step == "resize":
                engine.partitions = given_to_it
            else:
                engine.run(given_to_it, killed=step)
                if step != "before the commit":
                    judge.epoch(given_to_it)
            named = {file for kept in engine.commit for file in kept.files}
            assert named <= {file.name for file in (engine.folder / "chains").iterdir()}
        assert sorted(engine.put_out, key=repr) == sorted(judge.put_out, key=repr)


def test_files_are_merged_and_collected_beside_the_epochs(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    for second in range(100):
        engine.run([("a", 1_000_000 + second, 1), ("b", 1_000_000 + second, 2)])
        engine.merge()
    (kept,) = engine.commit
    assert max(len(files) for part in kept.parts for files in part.files.values()) <= 8
    assert len(list((tmp_path / "chains").glob("*.arrow"))) <= 40, "files that no commit names are gone"
    assert kept.rows < 40, "rows of a window and a key have become one"


def test_what_is_merged_while_an_epoch_is_folded_waits_for_the_next_commit(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    for second in range(40):
        engine.run([("a", 1_000_000 + second, 1)], killed="merged meanwhile")
        engine.host._epochs = 0  # files are collected after each epoch
    (kept,) = engine.commit
    assert max(len(files) for part in kept.parts for files in part.files.values()) <= 9
    assert sum(row["n"] for row in engine.state()) == 40


def test_state_of_another_form_is_not_gone_on_with(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.run([("a", 1, 1)])
    assert engine.commit[0].rows == 1
    chain = started()
    other = replace(chain, tables=tuple(replace(table, version=2) for table in chain.tables))
    engine.chain = KERNEL, None, other
    engine.run([("b", 2, 1)])
    assert engine.commit[0].rows == 1, "only what the second epoch has added"
