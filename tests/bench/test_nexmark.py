"""Nexmark's events are what they are said to be, and the benchmark measures all that it should."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.bench import nexmark
from headgate.bench.nexmark.events import COLUMNS, Events, end_marks, lines, write_files
from headgate.bench.nexmark.flows import QUERIES, flow
from headgate.errors import InputError
from headgate.model.schema import Schema

EVENTS = Events(seed=7, per_s=500)


def events(first: int, count: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(EVENTS, first, count)]


def test_proportions_and_ids() -> None:
    made = events(0, 10_000)
    assert Counter(event["event"] for event in made) == {"person": 200, "auction": 600, "bid": 9_200}
    for kind in ("person", "auction"):
        ids = [event["id"] for event in made if event["event"] == kind]
        assert ids == list(range(1_000, 1_000 + len(ids)))
    assert all(set(event) <= set(Schema.parse(COLUMNS).names) for event in made)
    assert [event["at"] for event in made] == sorted(event["at"] for event in made)


def test_a_few_are_hot() -> None:
    made = events(50_000, 10_000)
    bids = [event for event in made if event["event"] == "bid"]
    auctions = Counter(bid["auction"] % 100 == 0 for bid in bids)
    bidders = Counter(bid["bidder"] % 100 == 1 for bid in bids)
    sellers = Counter(event["seller"] % 100 == 0 for event in made if event["event"] == "auction")
    assert auctions[True] / len(bids) == pytest.approx(1 / 2, abs=0.03)
    assert bidders[True] / len(bids) == pytest.approx(3 / 4, abs=0.03)
    assert sellers[True] / sum(sellers.values()) == pytest.approx(3 / 4, abs=0.06)


def test_bids_are_on_auctions_that_are_open_or_soon_will_be() -> None:
    last = 0
    for event in events(0, 30_000):
        if event["event"] == "auction":
            last = event["id"]
            assert event["expires"] > event["at"]
        elif event["event"] == "bid":
            assert last - 110 <= event["auction"] <= last + 11 or event["auction"] % 100 == 0


@given(st.integers(0, 60_000), st.integers(1, 50), st.integers(0, 2**31 - 1))
def test_an_event_follows_from_seed_and_number(first: int, count: int, seed: int) -> None:
    made = Events(seed=seed)
    assert list(lines(made, first, count))[-1:] == list(lines(made, first + count - 1, 1))


def test_files_in_order_and_marks_of_the_end(tmp_path: Path) -> None:
    write_files(EVENTS, tmp_path, 1_000, 3)
    files = sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime)
    assert [path.name for path in files] == [f"{number:06d}.json" for number in range(4)]
    assert len({path.stat().st_mtime for path in files}) == 4
    texts = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert texts == [*lines(EVENTS, 0, 1_000), *end_marks(EVENTS, 1_000)]
    latest = max(json.loads(text).get("expires", "") for text in texts[:-3])
    assert all(json.loads(text)["at"] > latest for text in texts[-3:])


@pytest.mark.parametrize(("count", "files"), [(0, 1), (5, 6), (5, 0)])
def test_counts_that_cannot_be(tmp_path: Path, count: int, files: int) -> None:
    with pytest.raises(InputError, match="at least one event in each file"):
        write_files(EVENTS, tmp_path / "out", count, files)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("seed", "per_s"), [(1, 0), (-1, 1), (2**31, 1)])
def test_rates_and_seeds_that_cannot_be(seed: int, per_s: int) -> None:
    with pytest.raises(InputError, match="expected"):
        Events(seed, per_s)


def test_every_query_is_a_valid_dataflow() -> None:
    assert [flow(query).name for query in QUERIES] == [f"nexmark_q{number}" for number in range(9)]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_the_benchmark_on_few_events(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"EVENTS": 4_000, "FILES": 2, "SHARED_EVENTS": 4_000, "SHARED_FILES": 2, "PER_S": 100}.items():
        monkeypatch.setattr(nexmark, name, value)
    monkeypatch.setattr(nexmark.flink, "at_hand", lambda _: None)  # hundreds of megabytes to install
    measured = nexmark.run(1, print)
    assert measured.figures["same_rows"] == 1.0
    assert measured.figures["tasks_merged"] < 0.6 * measured.figures["tasks_separate"]
    assert 0 < measured.figures["cpu_ratio_shared"] < 1
    for query in QUERIES:
        for side in ("", "_hand"):
            assert measured.figures[f"{query}_events_per_s{side}"] > 0
            assert measured.figures[f"{query}_cpu_s_per_million{side}"] > 0
        assert query in measured.table
