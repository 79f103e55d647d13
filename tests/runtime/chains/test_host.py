"""The host of chains and its clock, without Spark: epochs, merges beside them, kills between any two steps, resizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.names import Signature
from headgate.runtime.chains import job
from headgate.runtime.chains.clock import next_ends
from headgate.runtime.chains.files import mapped
from headgate.runtime.chains.host import ChainHost, FoldedTask
from headgate.runtime.chains.job import ChainJobs, ChainTask
from headgate.runtime.chains.topics import ChainTopics
from headgate.runtime.compile.plan import Fragment, Kind
from headgate.runtime.exchange.files import FileExchange
from headgate.store.chain_entries import ChainKept
from tests.runtime.chains.test_chains import Judge, Row, rows
from tests.runtime.chains.toy import KERNEL, SIDE, started

KNOWN = ChainTask("toy", "{}", (SIDE.serialize().to_pybytes(),))
TASK = Signature("task")


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_started", lambda _: (KERNEL, None, started()))


class Here(ChainJobs):
    """Does here what workers do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.attempts = 0

    def frame(self, count: int) -> Any:
        del count

    def _run(self, work: Any, count: int, file: Path) -> list[Any]:
        del file
        self.attempts += 1
        does = job._merged if isinstance(work, job._Merging) else job._folded
        return [one for at in range(count) for one in does(work, at, self.attempts)]


class Engine:
    """A fragment's commits, and a host that may be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commit: tuple[ChainKept, ...] = ()
        self.epoch = 0
        self.partitions: int | None = None
        self.put_out: list[tuple[int, str | None, int, int]] = []
        self.start()

    def start(self) -> None:
        self.waiting: list[Callable[[Any], None]] = []
        self.host = ChainHost(Here(self.folder / "chains"), self.folder / "outputs", 2, self._offer)

    def _offer(self, frame: Any, work: Callable[[Any], None]) -> bool:
        del frame
        self.waiting.append(work)
        return True

    def run(self, some: list[Row], *, killed: str = "") -> None:
        file = self.folder / f"in-{self.epoch}.arrow"
        columns = zip(*some, strict=True) if some else [[], [], []]
        table = pa.table([pa.array(list(c), f.type) for c, f in zip(columns, SIDE, strict=True)], schema=SIDE)
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, SIDE) as writer:
            writer.write_table(table)
        task = FoldedTask(TASK, 1, KNOWN, ((str(file),),), self.partitions)
        folded = self.host.fold(self.epoch, self.commit, [task], lambda _: True)
        assert not folded.failed
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

    def merge(self) -> None:
        while self.waiting:
            self.waiting.pop()(None)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("epoch"), rows),
        st.tuples(st.just("before the commit"), rows),
        st.tuples(st.just("after the commit"), rows),
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


def test_state_of_another_form_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    engine = Engine(tmp_path)
    engine.run([("a", 1, 1)])
    assert engine.commit[0].rows == 1
    chain = started()
    other = replace(chain, tables=tuple(replace(table, version=2) for table in chain.tables))
    monkeypatch.setattr(job, "_started", lambda _: (KERNEL, None, other))
    engine.run([("b", 2, 1)])
    assert engine.commit[0].rows == 1, "only what the second epoch has added"


batches = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 4), st.integers(1, 30)), max_size=12)


@settings(max_examples=25, deadline=None)
@given(batches, st.integers(1, 60))
def test_the_clock_gives_every_batch_once_and_no_two_snapshots_at_a_time(
    given_to_it: list[tuple[str, int, int]], most: int
) -> None:
    with TemporaryDirectory() as name:
        exchange = FileExchange(Path(name))
        numbers: dict[str, int] = {}
        wanted = []
        # A writer runs its snapshots in order.
        for topic, snapshot, count in sorted(given_to_it, key=lambda one: one[1]):
            numbers[topic] = numbers.get(topic, -1) + 1
            exchange.publish(topic, numbers[topic], snapshot, [(f"{name}/none", count)], 0)
            wanted.append((topic, numbers[topic], snapshot))
        seen = []
        for epoch in _epochs(exchange, most):
            assert len({snapshot for _, _, snapshot in epoch}) == 1
            seen += epoch
        assert sorted(seen) == sorted(wanted)
        assert [snapshot for _, _, snapshot in seen] == sorted(snapshot or 0 for _, _, snapshot in seen)


def _epochs(exchange: FileExchange, most: int) -> Iterator[list[tuple[str, int, int | None]]]:
    start: dict[str, int] = {}
    while (ends := next_ends(exchange, ["a", "b"], start, most)) != start:
        epoch = [
            (t, n, exchange.snapshot_of(t, n)) for t, end in ends.items() for n in range(start.get(t, -1) + 1, end + 1)
        ]
        for topic, end in ends.items():
            exchange.done(topic, end)
        yield epoch
        start = ends


def test_a_topic_of_a_task_that_is_gone_is_read_until_it_is_drained(tmp_path: Path) -> None:
    topics = ChainTopics(tmp_path)
    one, both = (
        Fragment("f", Kind.CHAINED, (TASK,), reads=reads, reads_for=((TASK, 0), (Signature("other"), 0))[: len(reads)])
        for reads in (("x",), ("x", "y"))
    )
    topics.adopt(both, 3)
    topics.adopt(one, 4)
    topics.adopt(one, 5)
    assert set(topics.all()) == {"x", "y"}
    assert topics.drop(lambda _, left: left > 4) == []
    assert topics.drop(lambda _, left: left == 4) == ["y"]
    assert set(ChainTopics(tmp_path).all()) == {"x"}
    topics.adopt(both, 6)
    assert topics.drop(lambda *_: True) == [], "what runs is not dropped"
