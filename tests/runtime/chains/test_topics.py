"""Which topics a host of windows and joins reads, and up to which batch of each an epoch reads. No Spark."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.names import Signature
from headgate.runtime.chains.clock import next_ends
from headgate.runtime.chains.topics import ChainTopic, ChainTopics, listed
from headgate.runtime.compile.plan import ChainedSide, Fragment, Kind
from headgate.runtime.exchange.files import FileExchange

W, J = (Signature(letter * 8) for letter in "wj")


def host(**topics: ChainedSide) -> Fragment:
    return Fragment("host", Kind.CHAINED, (), reads=tuple(topics), reads_for=tuple(topics.values()))


def test_topics_of_tasks_that_are_gone_are_read_until_they_are_drained(tmp_path: Path) -> None:
    topics = ChainTopics(tmp_path)
    assert topics.all() == {}
    topics.adopt(host(a=ChainedSide(W, 1, 0), b=ChainedSide(J, 1, 1)), 1)
    topics.adopt(host(a=ChainedSide(W, 1, 0), c=ChainedSide(J, 7, 1)), 7)
    topics.adopt(host(a=ChainedSide(W, 1, 0), c=ChainedSide(J, 7, 1)), 8)
    assert listed(tmp_path) == {
        "a": ChainTopic(ChainedSide(W, 1, 0)),
        "b": ChainTopic(ChainedSide(J, 1, 1), 7),
        "c": ChainTopic(ChainedSide(J, 7, 1)),
    }
    assert topics.all()["b"].whose.life != topics.all()["c"].whose.life, "one that comes back has other state"
    asked = []
    assert topics.drop(lambda topic, left: asked.append((topic, left)) is not None) == []  # type: ignore[func-returns-value]
    assert topics.drop(lambda *_: True) == ["b"]
    assert asked == [("b", 7)]
    assert list(ChainTopics(tmp_path).all()) == ["a", "c"]


Batches = list[tuple[int, int]]
"""The snapshot and the rows of each batch of a topic."""

batches = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9)), max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), batches, min_size=1), st.integers(1, 12))
def test_epochs_have_rows_of_one_snapshot_and_read_all_in_order(waiting: dict[str, Batches], most: int) -> None:
    with TemporaryDirectory() as folder:
        exchange = FileExchange(Path(folder))
        for topic, some in waiting.items():
            for number, (snapshot, rows) in enumerate(some):
                exchange.publish(topic, number, snapshot, [(str(Path(folder) / "none"), rows)], 0)
        read: dict[str, Batches] = {topic: [] for topic in waiting}
        ends: dict[str, int] = {}
        for _ in range(100):
            before, ends = ends, next_ends(exchange, list(waiting), ends, most)
            new = {topic: waiting[topic][before.get(topic, -1) + 1 : end + 1] for topic, end in ends.items()}
            epoch = [batch for some in new.values() for batch in some]
            if not epoch:
                break
            firsts = {waiting[topic][before.get(topic, -1) + 1][0] for topic, some in new.items() if some}
            assert {snapshot for snapshot, _ in epoch} == firsts
            assert len(firsts) == 1
            assert sum(rows for _, rows in epoch) - max(rows for _, rows in epoch) < most
            for topic, some in new.items():
                read[topic] += some
                exchange.done(topic, ends[topic])
        assert read == waiting
