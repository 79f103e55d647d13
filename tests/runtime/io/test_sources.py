"""Every source hands over what is there, once, and goes on after a restart; limits hold."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.runtime.engine.engine import Engine
from headgate.tasks.frames import declared_schema
from headgate.tasks.replay import recorded
from headgate.tasks.sources import Replay
from tests.runtime.small import COLUMNS, files, flow, json_rows, memory, multiset, numbered, put, put_text, wait_for

pytestmark = pytest.mark.spark


def replay(path: Path, **options: Any) -> dict[str, Any]:
    return {"type": "replay", "config": {"path": str(path), **({"columns": COLUMNS} | options)}}


def as_csv(rows: list[dict[str, Any]], header: bool = True) -> str:
    lines = ["id,k,v"] if header else []
    return "\n".join([*lines, *(f"{row['id']},{row['k']},{row['v']}" for row in rows)]) + "\n"


def test_files_of_every_format(engine: Engine, tmp_path: Path) -> None:
    rows, later = numbered(0, 20), numbered(20, 7)

    def add(name: str, some: list[dict[str, Any]]) -> None:
        put(tmp_path / "json", name, some)
        put_text(tmp_path / "csv", f"{name}.csv", as_csv(some))
        put_text(tmp_path / "bare", f"{name}.csv", as_csv(some, header=False))
        put_text(tmp_path / "text", f"{name}.txt", "".join(f"line {row['id']}\n" for row in some))
        (tmp_path / "parquet" / "day=1").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(some), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.parquet").rename(tmp_path / "parquet" / "day=1" / f"{name}.parquet")

    add("a", rows)
    text: dict[str, Any] = {"type": "read_files", "config": {"path": str(tmp_path / "text"), "format": "text"}}
    engine.submit(
        flow("json", files(tmp_path / "json"), memory("json")),
        flow("csv", files(tmp_path / "csv", format="csv", header=True), memory("csv")),
        flow("bare", files(tmp_path / "bare" / "*.csv", format="csv"), memory("bare")),
        flow("parquet", files(tmp_path / "parquet", format="parquet"), memory("parquet")),
        flow("text", text, memory("text")),
    )
    engine.wait_until_idle()
    add("b", later)
    engine.wait_until_idle()
    for name in ("json", "csv", "bare", "parquet"):
        assert multiset(engine.memory.rows(name)) == multiset([*rows, *later]), name
    assert sorted(row["value"] for row in engine.memory.rows("text")) == sorted(f"line {i}" for i in range(27))


def test_rate_counts_from_nought_without_gaps(engine: Engine) -> None:
    engine.submit(flow("r", {"type": "rate", "config": {"rows_per_s": 40}}, memory("r")))
    wait_for(lambda: len(engine.memory.rows("r")) >= 60, "60 rows of a rate source")
    values = sorted(row["value"] for row in engine.memory.rows("r"))
    assert values == list(range(len(values)))


@pytest.fixture
def talker() -> Iterator[tuple[int, Callable[[str], None]]]:
    """A server that says what it is told to say to whoever connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        heard = threading.Event()
        callers: list[socket.socket] = []

        def accept() -> None:
            caller, _ = server.accept()
            callers.append(caller)
            heard.set()

        threading.Thread(target=accept, daemon=True).start()

        def say(text: str) -> None:
            assert heard.wait(60), "nobody connected"
            callers[0].sendall(text.encode())

        yield server.getsockname()[1], say
        for caller in callers:
            caller.close()


def test_lines_from_a_socket(engine: Engine, talker: tuple[int, Callable[[str], None]]) -> None:
    port, say = talker
    engine.submit(flow("s", {"type": "read_socket", "config": {"host": "127.0.0.1", "port": port}}, memory("s")))
    say("one\ntwo\n")
    wait_for(lambda: len(engine.memory.rows("s")) == 2, "two lines")
    say("three\n")
    wait_for(lambda: len(engine.memory.rows("s")) == 3, "a third line")
    assert [row["value"] for row in engine.memory.rows("s")] == ["one", "two", "three"]


def test_replay_as_fast_as_it_goes_and_slowly_to_the_end(engine: Engine, tmp_path: Path) -> None:
    rows = numbered(0, 30)
    put(tmp_path, "r", rows)
    put_text(tmp_path, "r.csv", as_csv(rows))
    began = time.monotonic()
    engine.submit(
        flow("fast", replay(tmp_path / "r.csv", format="csv", header=True), memory("fast")),
        flow("slow", replay(tmp_path / "r.json", rate_per_s=10), memory("slow")),
    )
    engine.wait_until_idle()
    assert time.monotonic() - began >= 2.9, "30 rows at 10 rows/s take 3 s"
    for name in ("fast", "slow"):
        assert multiset(engine.memory.rows(name)) == multiset(rows), name


def test_recordings_of_every_format(spark: SparkSession, tmp_path: Path) -> None:
    rows = numbered(0, 30)
    put(tmp_path, "r", rows)
    put_text(tmp_path, "r.csv", as_csv(rows, header=False))
    put_text(tmp_path, "r.txt", "a\nb\n")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "r.parquet")
    for ending, form in [("json", "json"), ("csv", "csv"), ("parquet", "parquet"), ("txt", "text")]:
        columns = None if form == "text" else COLUMNS
        options = Replay.model_validate({"path": str(tmp_path / f"r.{ending}"), "format": form, "columns": columns})
        outcome = recorded(options.model_dump_json(), declared_schema(options).json()).to_pylist()
        assert outcome == ([{"value": "a"}, {"value": "b"}] if form == "text" else rows), form


def test_replay_at_the_recorded_pace_and_again_and_again(engine: Engine, tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [start + timedelta(seconds=4 * i) for i in range(4)]
    put(tmp_path, "r", [{"i": i, "at": time.strftime("%Y-%m-%d %H:%M:%S")} for i, time in enumerate(times)])
    columns = "i long, at timestamp"
    paced = replay(tmp_path / "r.json", columns=columns, time_column="at", speed=4)
    again = replay(tmp_path / "r.json", columns=columns, rate_per_s=20, repeat=True)
    engine.submit(flow("paced", paced, memory("paced")), flow("again", again, memory("again")))
    began = time.monotonic()
    wait_for(lambda: len(engine.memory.rows("paced")) == 4, "four rows, 12 s apart in all, four times as fast")
    assert time.monotonic() - began >= 2.0
    assert [row["at"] for row in engine.memory.rows("paced")] == times
    wait_for(lambda: len(engine.memory.rows("again")) >= 10, "more rows than were recorded")
    seen = [row["i"] for row in engine.memory.rows("again")]
    assert seen == [i % 4 for i in range(len(seen))]


def test_replay_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    rows = numbered(0, 60)
    put(tmp_path, "r", rows)
    out: dict[str, Any] = {"type": "write_files", "config": {"path": str(tmp_path / "out")}}
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.submit(flow("r", replay(tmp_path / "r.json", rate_per_s=20), out))
        wait_for(lambda: len(json_rows(tmp_path / "out")) >= 5, "the first rows")
    before = len(json_rows(tmp_path / "out"))
    assert before < 60
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.wait_until_idle()
    assert multiset(json_rows(tmp_path / "out")) == multiset(rows)


def test_a_recording_with_corrupt_records_is_read_with_nulls(spark: SparkSession, tmp_path: Path) -> None:
    put_text(tmp_path, "r.json", '{"id": 1, "k": "a", "v": 2.5}\n{broken\n{"id": "x", "k": 7, "v": 1}\n')
    put_text(tmp_path, "r.csv", "1,a,2.5\nx,b,1\n3\n")
    nothing = {"id": None, "k": None, "v": None}
    columns = declared_schema(Replay(path="r", columns=COLUMNS)).json()
    options = Replay(path=str(tmp_path / "r.json"), columns=COLUMNS)
    assert recorded(options.model_dump_json(), columns).to_pylist() == [
        {"id": 1, "k": "a", "v": 2.5},
        nothing,
        {"id": None, "k": "7", "v": 1.0},
    ]
    options = Replay(path=str(tmp_path / "r.csv"), columns=COLUMNS, format="csv")
    assert recorded(options.model_dump_json(), columns).to_pylist() == [
        {"id": 1, "k": "a", "v": 2.5},
        {"id": None, "k": "b", "v": 1.0},
        {"id": 3, "k": None, "v": None},
    ]


def epoch_sizes(engine: Engine, name: str) -> list[int]:
    return [table.num_rows for _, table in sorted(engine.memory.epochs(name).items())]


def test_limits_hold_from_the_next_micro_batch_on(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path, "r", numbered(0, 200))
    for number in range(3):
        put(tmp_path / "in", f"{number}", numbered(number * 10, 10))
    engine.submit(
        flow("r", replay(tmp_path / "r.json", rate_per_s=60), memory("r")),
        flow("f", files(tmp_path / "in"), memory("f")),
    )
    wait_for(lambda: engine.memory.rows("r"), "rows of the replay")
    wait_for(lambda: len(engine.memory.rows("f")) == 30, "the files that are there")
    queries = {name: fragment.query for name, fragment in engine.fragments.items()}
    engine.limit("r", "t0", 2)
    passed = len(engine.memory.epochs("r"))
    wait_for(lambda: len(engine.memory.epochs("r")) >= passed + 5, "epochs under the limit")
    assert epoch_sizes(engine, "r")[passed + 1 :] == [2] * len(epoch_sizes(engine, "r")[passed + 1 :])
    engine.limit("r", "t0", None)

    engine.limit("f", "t0", 10)
    assert {name: fragment.query for name, fragment in engine.fragments.items()} == queries, "nothing was restarted"
    passed = len(engine.memory.epochs("f"))
    put(tmp_path / "in", "3", numbered(30, 30))
    engine.wait_until_idle()
    sizes = epoch_sizes(engine, "f")[passed:]
    assert len(sizes) >= 3, "a file is cut where there is more in it than may come at once"
    assert max(sizes) <= 11, "lines are about as long as those at the file's beginning"
    assert engine.memory.rows("f") == numbered(0, 60)
    assert multiset(engine.memory.rows("r")) == multiset(numbered(0, 200))


def test_a_limit_of_a_stateful_task_holds_from_its_next_batch_on(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path, "r", numbered(0, 60))
    source = {"id": "read", **replay(tmp_path / "r.json", rate_per_s=40, repeat=True)}
    engine.submit(flow("keyed", source, {"id": "n", "type": "count", "config": {"key": ["k"]}}, memory("keyed")))
    wait_for(lambda: engine.memory.rows("keyed"), "rows of the keyed task")
    engine.limit("keyed", "read", 5)
    engine.limit("keyed", "n", 1)
    # It takes whole batches of the stream before it, one at a time, and those have at most 5 rows.
    wait_for(
        lambda: max(epoch_sizes(engine, "keyed")[-3:]) <= 5 and len(engine.memory.rows("keyed")) >= 60,
        "small batches, and the whole recording",
    )
    seen = [row["id"] for row in sorted(engine.memory.rows("keyed"), key=lambda row: (row["count"], row["k"]))]
    assert sorted(seen[:60]) == list(range(60)), "in order, and none left out"


def test_limits_that_cannot_be(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 1))
    where = {"type": "filter", "config": {"where": "v > 0"}}
    engine.submit(
        flow("f", files(tmp_path / "in"), where, memory("f")),
        flow("r", {"type": "rate", "config": {"rows_per_s": 1}}, memory("r")),
    )
    refused = [("f", "t1", 5, "CANNOT_LIMIT"), ("r", "t0", 5, "CANNOT_LIMIT"), ("f", "t0", 0, "BAD_LIMIT")]
    for name, task, rows, condition in refused:
        with pytest.raises(InputError) as raised:
            engine.limit(name, task, rows)
        assert raised.value.condition == condition
    assert engine.snapshot.number == 1
