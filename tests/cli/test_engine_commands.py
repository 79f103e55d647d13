"""The commands that talk to an engine, over a real socket to an engine without Spark."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from headgate.api.application import application
from headgate.api.client import EngineClient
from headgate.api.server import serving
from headgate.cli.main import app
from headgate.errors import HeadgateError
from headgate.model.service_level import ServiceLevel
from headgate.runtime.engine import engine as engine_module
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.api.samples import document


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    monkeypatch.chdir(tmp_path)
    state = tmp_path / ".headgate"
    state.mkdir()
    made = FakeEngine(state)
    with serving(state, application(ServedEngine(made, default_registry()))):
        yield made


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def write(name: str, where: str = "value > 1", **more: Any) -> str:
    Path(f"{name}.json").write_text(json.dumps(document(name, where, **more)), encoding="utf-8")
    return f"{name}.json"


def test_submit_shows_what_becomes_of_each_task(engine: FakeEngine) -> None:
    printed = run("submit", write("wide"))
    assert printed.startswith("wide: 3 tasks; 0 shared, 3 new\n")
    assert printed.endswith("Snapshot 1; fragments: 1 touched, 0 started, 0 restarted.\n")
    lines = [line.split() for line in run("submit", write("narrow", "value > 5")).splitlines()]
    assert lines[0] == ["narrow:", "3", "tasks;", "1", "shared,", "1", "from", "wider", "streams,", "1", "new"]
    assert lines[3] == ["r", "shared", "with", "wide"]
    assert lines[4][:5] == ["f", "from", "a", "wider", "stream"]
    assert lines[5] == ["w", "new", "-"]
    assert run("submit", "wide.json") == "wide: already running, unchanged\n"


def test_list_status_withdraw_as_text_csv_and_json(engine: FakeEngine) -> None:
    run("submit", write("wide"), write("narrow", "value > 5", owner="ben"))
    with EngineClient(engine.state.path) as client:
        assert json.loads(run("list", "--json")) == client.dataflows(), "what the API answers"
        assert json.loads(run("status", "--json")) == client.status()
        assert json.loads(run("status", "narrow", "--json")) == client.status("narrow")
    assert [line.split(",")[:2] for line in run("list", "--csv").splitlines()[1:]] == [
        ["wide", "nobody"],
        ["narrow", "ben"],
    ]
    assert "Strategy hot." in run("list")
    printed = run("status")
    assert "wide.r" in printed, "fragments have the name of their root task"
    assert "source-1" not in printed
    tasks = [line.split() for line in run("status", "narrow").splitlines()]
    assert ["r", "rate", "wide"] in tasks
    assert ["w", "write_memory", "-"] in tasks, "shared with nobody"
    gone = run("withdraw", "wide")
    assert gone.startswith("wide: 1 task removed, 2 kept for others\n")
    assert "narrow" in gone
    assert [flow.name for flow in engine.dataflows] == ["narrow"]


@pytest.mark.parametrize(
    ("arguments", "done", "sentence"),
    [
        (["switch", "wide", "f", "quick"], ("switch", "wide", "f", "quick"), "wide: f is done by quick"),
        (["switch", "wide", "f", "--release"], ("release", "wide", "f"), "policies may choose how f is done"),
        (["partitions", "wide", "f", "8"], ("repartition", "wide", "f", 8), "wide: f runs on 8 partitions"),
        (["partitions", "wide", "f", "none"], ("repartition", "wide", "f", None), "as many partitions as its input"),
        (["limit", "wide", "r", "1"], ("limit", "wide", "r", 1), "wide: r takes at most 1 row a micro-batch"),
        (["limit", "wide", "r", "none"], ("limit", "wide", "r", None), "wide: r has no limit"),
        (["pause", "wide"], ("pause", "wide"), "wide is paused; 'headgate resume wide' lets it go on"),
        (["resume", "wide"], ("resume", "wide"), "wide goes on"),
    ],
)
def test_how_tasks_run_is_changed_through_the_engine(
    engine: FakeEngine, arguments: list[str], done: tuple[object, ...], sentence: str
) -> None:
    run("submit", write("wide"))
    assert sentence in run(*arguments)
    assert json.loads(run(*arguments, "--json"))["snapshot"] == engine.snapshot == 3
    assert engine.done == [done, done]


def test_a_service_level_is_changed_and_shown(engine: FakeEngine) -> None:
    run("submit", write("wide"))
    assert "Service levels" in run("level", "wide", "--latency", "2s", "--budget", "none", "--processors", "4")
    assert engine.done == [("level", "wide", ServiceLevel(latency_max_s=2.0, processors_max=4))]
    run("level", "wide")
    run("level", "wide", "--reset")
    assert engine.done[1:] == [("level", "wide", None)], "to look changes nothing"


def test_what_is_no_number_changes_nothing(engine: FakeEngine) -> None:
    run("submit", write("wide"))
    for number in ("few", "1.5", "\u0663"):
        for command in (["limit", "wide", "r"], ["partitions", "wide", "f"]):
            with pytest.raises(HeadgateError, match="expected a whole number, or none"):
                run(*command, number)
    assert engine.done == []


def test_refusals_are_the_engines(engine: FakeEngine) -> None:
    run("submit", write("wide"))
    for arguments, condition in [
        (["submit", write("wide", "value > 3")], "DATAFLOW_CHANGED"),
        (["withdraw", "wdie"], "UNKNOWN_DATAFLOW"),
        (["status", "wdie"], "UNKNOWN_DATAFLOW"),
        (["submit", write("bad", "valve > 3")], "INVALID_DATAFLOW"),
        (["list", "--state", "none"], "NO_ENGINE"),
    ]:
        with pytest.raises(HeadgateError) as caught:
            run(*arguments)
        assert caught.value.condition == condition
    run("submit", "--replace", "wide.json")
    assert engine.snapshot == 2


class FakeRunEngine(FakeEngine):
    """The same, as ``headgate run`` starts and stops it."""

    def __init__(self, state: Path, **settings: Any) -> None:
        state.mkdir(exist_ok=True)
        super().__init__(state)
        self.settings, self.log, self.stopped = settings, state / "spark.log", False
        self.history, self.scaling = SimpleNamespace(listeners=[]), SimpleNamespace(provider=None)

    def housekeep(self) -> None:
        """Nothing to do."""

    def mendable(self) -> bool:
        return False

    def stop(self) -> None:
        self.stopped = True


def test_run_serves_the_api_until_its_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it runs, another command submits a dataflow; the summary has it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setattr(engine_module, "Engine", FakeRunEngine)

    def submit_one() -> None:
        while True:
            with suppress(HeadgateError), EngineClient(".headgate") as client:
                client.submit([document("late")])
                return
            time.sleep(0.02)

    other = threading.Thread(target=submit_one)
    other.start()
    done = json.loads(run("run", write("early"), "--serve", "--for", "1s", "--json", "--trigger", "250ms"))
    other.join(10)
    assert [(flow["name"], flow["state"]) for flow in done["dataflows"]] == [("early", "running"), ("late", "running")]
    assert not done["failed"]
    printed = run("run", write("early"), "--for", "100ms")
    assert printed.splitlines()[0] == "Dataflows"
    assert not (tmp_path / ".headgate" / "control.sock").exists()
