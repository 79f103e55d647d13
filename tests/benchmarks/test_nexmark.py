"""Nexmark's events are what they are said to be, and the benchmark measures all that it should."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import HeadgateError, InputError
from headgate.model.schema import Schema
from headgate_benchmarks.beyond_start_up import Cost
from headgate_benchmarks.nexmark import flink, flink_job, side_by_side
from headgate_benchmarks.nexmark.benchmark import NEXMARK
from headgate_benchmarks.nexmark.events import COLUMNS, Events, end_marks, lines, write_files
from headgate_benchmarks.nexmark.flows import QUERIES, flow
from headgate_benchmarks.nexmark.on_headgate import Data
from headgate_benchmarks.nexmark.side_by_side import QuerySizes, _System
from headgate_benchmarks.study import Measured

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


# side by side


def test_what_events_cost_beyond_starting_up() -> None:
    cost = Cost(cpu_s=(10.0, 16.0), wall_s=(6.0, 9.0), events=(100_000, 400_000))
    assert cost.is_clear
    assert (cost.cpu_s_per_million, cost.events_per_s) == (20.0, 100_000.0)
    assert not Cost((10.0, 9.9), (6.0, 9.0), (1, 2)).is_clear
    assert not Cost((10.0, 16.0), (6.0, 6.0), (1, 2)).is_clear


def system(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, fails: str = "", wrong: str = "") -> _System:
    """A system that has been measured; it fails at one query and answers another one wrongly."""
    monkeypatch.setattr(side_by_side, "is_right", lambda query, _, data: query != wrong or data.count == 10)
    spent = iter(range(1_000_000))
    monkeypatch.setattr(side_by_side, "cpu_seconds", lambda: next(spent) ** 2 / 10)
    monkeypatch.setattr(side_by_side, "time", SimpleNamespace(monotonic=lambda: next(spent) ** 2 / 10))

    def way(query: str, events: Path, place: Path) -> None:
        assert (events, place.parent) == (tmp_path, tmp_path)
        if query == fails:
            raise RuntimeError("OVER windows   are not\nsupported")

    made = _System(name, way, QuerySizes(), read=lambda *_: None)
    for query in ("q0", "q6"):
        made.measure(None, query, (Data(tmp_path, 10, {}), Data(tmp_path, 110, {})), tmp_path, lambda _: None)
    return made


def test_what_a_system_cannot_do_is_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = system("headgate", monkeypatch, tmp_path)
    flink = system("flink", monkeypatch, tmp_path, fails="q6")
    assert flink.notes == {"q6 flink": "cannot be run: OVER windows are not supported"}
    figures = side_by_side._figures([ours, flink])
    assert "q6_events_per_s_headgate" in figures
    assert "q6_events_per_s_flink" not in figures
    assert (figures["queries_compared_flink"], figures["same_rows"]) == (1, 1)
    assert "rate_flink" not in side_by_side._table([ours, flink]).rows[6]
    # What Headgate or Spark by hand cannot do is a fault.
    assert side_by_side._figures([system("headgate", monkeypatch, tmp_path, fails="q6")])["same_rows"] == 0


def test_a_picture_with_gaps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    systems = [system("headgate", monkeypatch, tmp_path), system("flink", monkeypatch, tmp_path, fails="q6")]
    assert NEXMARK.plot is not None
    (path,) = NEXMARK.plot(Measured(side_by_side._figures(systems), {}), tmp_path / "plots")
    assert path.stat().st_size > 5_000


def test_wrong_answers_are_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    flink = system("flink", monkeypatch, tmp_path, wrong="q0")
    assert flink.notes == {"q0 flink": "answers over 110 events differ from batch SQL"}
    assert side_by_side._figures([system("headgate", monkeypatch, tmp_path), flink])["same_rows"] == 0


def test_a_figure_that_is_lost_in_noise_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = system("headgate", monkeypatch, tmp_path)
    spent = iter([0.0, 0.0, 5.0, 5.0, 9.0])
    monkeypatch.setattr(side_by_side, "cpu_seconds", lambda: next(spent))
    ours.measure(None, "q1", (Data(tmp_path, 10, {}), Data(tmp_path, 110, {})), tmp_path, lambda _: None)
    assert "q1_events_per_s_headgate" not in side_by_side._figures([ours])
    assert "noise" in ours.notes["q1 headgate"]


def test_without_flink_it_is_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nowhere(_: object) -> Path:
        raise HeadgateError("NO_PEERS", "the other stream processors could not be installed: no network")

    monkeypatch.setattr(flink, "available", nowhere)
    notes: dict[str, str] = {}
    with side_by_side._flink(tmp_path / "log", lambda _: None, notes, QuerySizes()) as peer:
        assert peer is None
    assert notes == {"flink": "left out: the other stream processors could not be installed: no network"}


def test_a_flink_that_ends_is_started_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "flink_job.py"
    monkeypatch.setattr(flink, "__file__", str(tmp_path / "flink.py"))
    program.write_text(
        "import json, sys\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    query, events, place = json.loads(line)\n"
        "    if query == 'q7':\n"
        "        sys.exit('out of memory')\n"
        "    print('failed no such thing' if query == 'q6' else 'done', flush=True)\n"
    )
    peer = flink.Flink(Path(sys.executable), tmp_path / "log")
    peer.run("q0", tmp_path, tmp_path)
    with pytest.raises(RuntimeError, match="no such thing"):
        peer.run("q6", tmp_path, tmp_path)
    with pytest.raises(RuntimeError, match=r"has ended.*out of memory"):
        peer.run("q7", tmp_path, tmp_path)
    peer.run("q8", tmp_path, tmp_path)
    peer.stop()


def test_retracted_answers_do_not_count(tmp_path: Path) -> None:
    def put(name: str, *changes: tuple[str, int, float]) -> None:
        rows = [(op, {"k": k, "n": n}) for op, k, n in changes]
        lines = [
            {"before": row if op == "d" else None, "after": None if op == "d" else row, "op": op} for op, row in rows
        ]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    put("part-0b1c-0-1", ("d", 1, 7.5), ("c", 1, 8.25))  # files are in no order
    put("part-0b1c-0-0", ("c", 1, 6), ("d", 1, 6), ("c", 1, 7.5))
    put("part-0b1c-1-0", ("c", 2, 5), ("c", 2, 5), ("c", 3, 1), ("d", 3, 1))
    assert sorted(map(json.loads, flink.standing(tmp_path)), key=str) == [
        {"k": 1, "n": 8.25},
        {"k": 2, "n": 5},
        {"k": 2, "n": 5},
    ]


def test_flink_has_every_query_and_says_why_it_fails() -> None:
    assert set(flink_job.QUERIES) == set(flink_job.ANSWERS) == set(flink.COLUMNS) == set(QUERIES)
    assert flink_job.CORRECTED == flink.CORRECTED
    trace = (
        "An error occurred while calling o8.executeSql.\n: org.apache.flink.table.api.TableException: outer\n"
        "\tat org.apache.flink.table.Planner\nCaused by: java.lang.IllegalStateException: the inner  reason\n\tat x.y\n"
    )
    assert flink_job._reason(Exception(trace)) == "java.lang.IllegalStateException: the inner reason"
    assert flink_job._reason(ValueError("plain")) == "plain"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1500)
def test_the_benchmark_on_few_events() -> None:
    """Flink is measured where it is installed; installing it takes hundreds of megabytes."""
    small = replace(NEXMARK.long.queries, few=4_000, many=8_000, per_file=4_000, per_s=100, short=True)
    sizes = replace(NEXMARK.long, queries=small, sharing=replace(NEXMARK.long.sharing, events=4_000, per_s=100))
    assert NEXMARK.whole is not None
    measured = NEXMARK.whole(1, print, sizes)
    figures, taken = measured.figures, measured.samples["queries"]
    assert figures["same_rows"] == 1.0, measured.notes
    assert figures["sharing_tasks_merged"] < 0.6 * figures["sharing_tasks_separate"]
    assert figures["sharing_spark_queries_merged"] < figures["sharing_spark_queries_separate"]
    assert 0 < figures["sharing_cpu_ratio"] < 1
    for query in QUERIES:
        for name in ("headgate", "pyspark"):
            assert min(*taken[name][query]["cpu_s"], *taken[name][query]["wall_s"]) > 0
    if "flink" in taken:
        assert set(taken["flink"]) == set(QUERIES) - {"q6"}, measured.notes
        assert "OVER window" in measured.notes["q6 flink"]
    else:
        assert measured.notes["flink"].startswith("left out")
