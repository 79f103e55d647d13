"""Bad input gets a clear sentence, changes nothing, and harms no other dataflow."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.status import DataflowStatus
from headgate.runtime.engine.engine import Engine
from tests.runtime.small import files, flow, json_rows, memory, multiset, numbered, put, put_text, wait_for

pytestmark = pytest.mark.spark


def out(folder: Path) -> dict[str, Any]:
    return {"type": "write_files", "config": {"path": str(folder)}}


@pytest.fixture
def good(engine: Engine, tmp_path: Path) -> Callable[[], None]:
    """A dataflow that runs beside the bad ones; at the end it has got every row and was never stopped."""
    put(tmp_path / "good", "0", numbered(0, 3))
    engine.submit(flow("good", {"id": "read", **files(tmp_path / "good")}, memory("good")))
    engine.wait_until_idle()
    query = next(iter(engine.fragments.values())).query

    def check() -> None:
        put(tmp_path / "good", "1", numbered(3, 3))
        wait_for(lambda: len(engine.memory.rows("good")) == 6, "rows of the good dataflow")
        assert multiset(engine.memory.rows("good")) == multiset(numbered(0, 6))
        assert any(fragment.query is query for fragment in engine.fragments.values())
        assert status(engine, "good").state == "running"

    return check


def status(engine: Engine, name: str) -> DataflowStatus:
    return next(found for found in engine.status()[0] if found.name == name)


def test_what_cannot_be_run_is_told_and_changes_nothing(
    engine: Engine, tmp_path: Path, good: Callable[[], None]
) -> None:
    source = files(tmp_path / "good")

    def step(type: str, **config: Any) -> Dataflow:
        return flow("bad", source, {"type": type, "config": config}, memory("bad"))

    unlike = {"type": "union", "inputs": ["t0", "t1"]}
    narrow = {"type": "sql", "config": {"query": "select k from `in`"}}
    cases: list[tuple[Dataflow, str, str]] = [
        (
            flow("bad", files(tmp_path / "none"), memory("bad")),
            "SOURCE_NOT_THERE",
            r"task 'bad\.t0': no files at '.*none'",
        ),
        (
            flow("bad", {"type": "replay", "config": {"path": "none.csv", "columns": "a long"}}, memory("bad")),
            "SOURCE_NOT_THERE",
            r"task 'bad\.t0': no file at 'none.csv'",
        ),
        (step("filter", where="k + array(1) > 1"), "TASK_REFUSED", r"task 'bad\.t1'.*MISMATCH"),
        (step("filter", where="v"), "TASK_REFUSED", r"task 'bad\.t1'.*(?i:boolean)"),
        (step("explode", column="v"), "TASK_REFUSED", r"task 'bad\.t1'"),
        (step("sql", query="select nothing from `in`"), "TASK_REFUSED", r"task 'bad\.t1'.*nothing"),
        (
            step("python", function="no.such.module"),
            "NO_SUCH_FUNCTION",
            r"'bad\.t1': cannot load.*no\.such\.module",
        ),
        (step("window", time="k", size="5s", columns={"n": "count(*)"}), "TASK_REFUSED", r"'bad\.t1': event time 'k'"),
        (_listed_in_a_window(tmp_path), "TASK_REFUSED", r"task 'bad\.t1': .*listagg"),
        (step("opaque", label="dreams"), "CANNOT_RUN", r"task 'bad\.t1' has type opaque"),
        (flow("bad", source, narrow, unlike, memory("bad")), "SCHEMA_DOES_NOT_FIT", r"task 'bad\.t2': the streams"),
        (flow("good", source, memory("other")), "NAME_TAKEN", r"'good' is submitted already"),
    ]
    for bad, condition, sentence in cases:
        with pytest.raises(InputError, match=sentence) as raised:
            engine.submit(flow("fine", source, memory("fine")), bad)
        assert raised.value.condition == condition, sentence
        assert "\n" not in raised.value.message
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: engine.withdraw("godo"), "UNKNOWN_DATAFLOW"),
        (lambda: engine.pause("nobody"), "UNKNOWN_DATAFLOW"),
        (lambda: engine.switch("good", "raed", "x"), "UNKNOWN_TASK"),
        (lambda: engine.switch("good", "read", "x"), "UNKNOWN_ALTERNATE"),
        (lambda: engine.repartition("good", "read", 0), "BAD_PARTITIONS"),
    ]
    for change, condition in refused:
        with pytest.raises(InputError) as raised:
            change()
        assert raised.value.condition == condition
    assert [found.name for found in engine.status()[0]] == ["good"]
    assert engine.snapshot.number == 1
    assert len(list((engine.state.path / "fragments").iterdir())) == 1
    good()


def _listed_in_a_window(tmp_path: Path) -> Dataflow:
    """What Spark accepts over tables and no window has."""
    config = {"time": "t", "size": "5s", "columns": {"n": "listagg(k)"}}
    source = files(tmp_path / "good", columns="t timestamp, k string")
    return flow("bad", source, {"type": "window", "config": config}, memory("bad"))


def test_values_that_do_not_fit_become_nulls_and_the_run_goes_on(
    engine: Engine, tmp_path: Path, good: Callable[[], None]
) -> None:
    put_text(tmp_path / "json", "0.json", '{"id": 1, "k": "a", "v": 1}\n{}\n{"id": "x", "k": "b", "v": 2}\n')
    put_text(tmp_path / "csv", "0.csv", "1,a,1\nx,b,2\n3\n")
    put_text(tmp_path / "text", "0.txt", '{"id": 1}\nnonsense\n\n')
    parse = {"type": "parse_json", "config": {"columns": "id long"}}
    texts = {"type": "read_files", "config": {"path": str(tmp_path / "text"), "format": "text"}}
    engine.submit(
        flow("json", files(tmp_path / "json"), memory("json")),
        flow("csv", files(tmp_path / "csv", format="csv"), memory("csv")),
        flow("parsed", texts, parse, memory("parsed")),
    )
    engine.wait_until_idle()
    nothing: dict[str, Any] = {"id": None, "k": None, "v": None}
    one: dict[str, Any] = {"id": 1, "k": "a", "v": 1.0}
    assert engine.memory.rows("json") == [one, nothing, {"id": None, "k": "b", "v": 2.0}]
    assert engine.memory.rows("csv") == [one, {"id": None, "k": "b", "v": 2.0}, {"id": 3, "k": None, "v": None}]
    assert engine.memory.rows("parsed") == [{"id": 1}, {"id": None}, {"id": None}]
    put(tmp_path / "json", "1", [{"id": 9, "k": "z", "v": 0.0}])
    engine.wait_until_idle()
    assert {"id": 9, "k": "z", "v": 0.0} in engine.memory.rows("json")
    good()


def refused_then_mended(
    engine: Engine, tmp_path: Path, folder: Path, reason: str, mend: Callable[[], None], more: int = 4
) -> None:
    """A sink refuses, and gets everything once it is mended; another sink of the same rows never notices."""
    source = files(tmp_path / "in")
    put(tmp_path / "in", "0", numbered(0, 4))
    engine.submit(flow("held", source, out(folder)), flow("free", source, memory("free")))
    engine.wait_until_idle()
    put(tmp_path / "in", "1", numbered(4, more))
    engine.wait_until_idle()
    engine.housekeep()
    held = status(engine, "held")
    assert held.state == "degraded"
    assert f"cannot write to sink 'held.t1' ({reason}" in held.reason
    assert held.reason.endswith("its rows are queued and retried")
    assert (status(engine, "free").state, len(engine.memory.rows("free"))) == ("running", 4 + more)
    mend()
    engine.housekeep()
    assert (status(engine, "held").state, status(engine, "held").rows_out) == ("running", 4 + more)
    put(tmp_path / "in", "2", numbered(4 + more, 4))
    engine.wait_until_idle()
    assert multiset(json_rows(folder)) == multiset(numbered(0, 8 + more))


def test_a_file_where_the_sinks_folder_should_be(engine: Engine, tmp_path: Path, good: Callable[[], None]) -> None:
    (tmp_path / "out").touch()
    refused_then_mended(engine, tmp_path, tmp_path / "out", "file exists", (tmp_path / "out").unlink)
    good()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.getuid() == 0 and shutil.which("mount") is not None
    if not mounted or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], stderr=-3).returncode:
        pytest.skip("may not mount a disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_read_only_disk(engine: Engine, tmp_path: Path, small_disk: Path) -> None:
    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", small_disk], check=True)

    remount("ro")
    with pytest.raises(InputError, match=r"cannot use .* as state directory: read-only file system") as raised:
        Engine(small_disk / "state", spark=engine.spark)
    assert raised.value.condition == "STATE_UNUSABLE"
    refused_then_mended(engine, tmp_path, small_disk / "out", "read-only file system", lambda: remount("rw"))


def test_a_full_disk(engine: Engine, tmp_path: Path, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 60_000)
    refused_then_mended(engine, tmp_path, small_disk / "out", "no space left on device", ballast.unlink, more=400)


def test_state_directories_that_cannot_be_used(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    Engine(other, spark=spark).stop()
    (other / "version").write_text("99")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    (tmp_path / "file").touch()
    for folder, condition, sentence in [
        (other, "STATE_VERSION", "has version '99', and this Headgate reads version 6"),
        (tmp_path / "photos", "STATE_UNUSABLE", "is neither empty nor a state directory of Headgate"),
        (tmp_path / "file", "STATE_UNUSABLE", "cannot use .* as state directory: file exists"),
        (engine.state.path, "STATE_IN_USE", f"is in use by process {os.getpid()} on "),
    ]:
        with pytest.raises(InputError, match=sentence) as raised:
            Engine(folder, spark=spark)
        assert raised.value.condition == condition
    assert not (tmp_path / "photos" / "journal").exists()


def test_a_source_that_is_gone_at_the_next_start_keeps_nobody_else_from_running(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("stays", "goes"):
        put(tmp_path / name, "0", numbered(0, 3))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        for name in ("stays", "goes"):
            engine.submit(flow(name, files(tmp_path / name), out(tmp_path / f"{name}_out")))
        engine.wait_until_idle()
    (tmp_path / "goes").rename(tmp_path / "gone")
    put(tmp_path / "stays", "1", numbered(3, 3))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.wait_until_idle(despite_failures=True)
        assert status(engine, "stays").state == "running"
        assert status(engine, "goes").state == "degraded"
        assert "no files at" in status(engine, "goes").reason
        engine.submit(flow("new", files(tmp_path / "stays"), memory("new")))
        (tmp_path / "gone").rename(tmp_path / "goes")
        put(tmp_path / "goes", "1", numbered(3, 3))
        engine.housekeep()
        engine.wait_until_idle()
        assert {found.state for found in engine.status()[0]} == {"running"}
    for name in ("stays", "goes"):
        assert multiset(json_rows(tmp_path / f"{name}_out")) == multiset(numbered(0, 6)), name


def test_a_fragment_that_fails_is_told_and_the_others_go_on(
    engine: Engine, tmp_path: Path, good: Callable[[], None]
) -> None:
    put(tmp_path / "in", "0", numbered(0, 3))
    broken = {"type": "python", "config": {"function": "tests.runtime.functions.broken"}}
    engine.submit(flow("broken", files(tmp_path / "in"), broken, memory("broken")))
    wait_for(lambda: status(engine, "broken").state == "degraded", "the dataflow to be degraded")
    assert "ValueError: cannot stand 0" in status(engine, "broken").reason
    good()
    engine.withdraw("broken")
    assert [found.name for found in engine.status()[0]] == ["good"]
