"""The process that the user starts: it starts dead engines again, answers meanwhile, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from headgate.api.client import EngineClient
from headgate.errors import HeadgateError, InputError
from headgate.runtime.engine.state import StateDirectory
from headgate.service.restarts import LONGEST_PAUSE_S, LOOP, Restarts, is_passing
from tests import processes
from tests.cli.supervised_program import HEALTHY_S


def wait_for(reached: Callable[[], bool], what: str, patience_s: float = 30.0) -> None:
    until = time.monotonic() + patience_s
    while not reached():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    """Whether a process runs; a zombie does not."""
    with suppress(OSError):
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return False


def pauses(log: str) -> list[str]:
    """The pauses that a supervisor has announced."""
    return [line.split()[-2] for line in log.splitlines() if line.startswith("headgate:")]


class Program:
    """``tests.cli.supervised_program`` in a folder, with one word for each start of its engine."""

    def __init__(self, folder: Path, words: str) -> None:
        self.folder, self.state = folder, folder / "state"
        (folder / "words").write_text(words)
        self.log = folder / "log"
        self.process = processes.start([sys.executable, "-m", "tests.cli.supervised_program", str(folder)], folder)

    def ask(self, request_id: str = "x") -> int:
        """Ask with one change; returns which process answered."""
        wait_for((self.state / "lock").exists, "a supervisor")
        with EngineClient(self.state) as client:
            answer: int = client.pause("x", request_id=request_id)["process"]
            return answer

    def processes(self) -> list[int]:
        """The engine's, and the one that it has started."""
        return [int(each) for each in (self.folder / "processes").read_text().split()]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[Program] = []

    def begin(words: str = "") -> Program:
        made.append(Program(tmp_path, words))
        return made[-1]

    yield begin
    for program in made:
        program.process.kill()
        program.process.wait()
        for process in program.processes() if (program.folder / "processes").exists() else ():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def test_a_request_waits_for_an_engine_that_is_just_being_started(start: Start, tmp_path: Path) -> None:
    program = start("slow")
    wait_for((tmp_path / "processes").exists, "an engine")
    began = time.monotonic()
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(program.state / "control.sock"))) as http:
        problem = http.get("http://engine/v1/status")
    assert (problem.status_code, problem.headers["retry-after"]) == (503, "1")
    assert problem.json()["condition"] == "ENGINE_STARTING"
    assert time.monotonic() - began < 1, "answered at once"
    assert program.ask() == program.processes()[0]
    assert program.end() == 0
    assert not (program.state / "control.sock").exists()


def test_a_change_in_flight_gets_its_answer_from_the_next_engine(start: Start) -> None:
    program = start()
    first = program.ask()
    second = program.ask("boom")
    assert second != first
    assert program.ask() == second == program.processes()[0]
    assert "The engine's process was killed by signal 9. Starting again in 0.1 s." in program.log.read_text()
    assert program.end() == 0


def test_bad_input_is_not_tried_again(start: Start) -> None:
    program = start("input")
    assert program.process.wait(30) == 2
    assert program.log.read_text().split("\n") == ["input ", "this cannot be run", ""]
    StateDirectory(program.state).close()


def test_a_crash_loop_goes_on_without_the_newest_and_with_growing_pauses(start: Start) -> None:
    program = start("kill bug served served served")
    assert program.ask() == program.processes()[0]
    log = program.log.read_text()
    assert [line for line in log.splitlines() if not line.startswith("headgate:")] == [
        "kill ",
        "bug ",
        "served ",
        "served ",
        "served ",
        "serve without newest",
    ]
    assert pauses(log) == ["0.1", "0.2", "0.4", "0.8", "1.6"]
    assert "RuntimeError: a bug. Starting again" in log
    assert "Traceback" not in log
    assert program.end() == 0


def test_an_engine_that_was_well_for_a_while_begins_anew(start: Start) -> None:
    program = start("served served")
    program.ask()
    time.sleep(HEALTHY_S + 0.5)
    os.kill(program.processes()[0], signal.SIGKILL)
    program.ask()
    assert pauses(program.log.read_text()) == ["0.1", "0.2", "0.1"]


def test_nothing_outlives_the_supervisor(start: Start) -> None:
    program = start("leaving")
    program.ask()
    processes = program.processes()
    program.process.kill()
    program.process.wait()
    StateDirectory(program.state).close()  # free as soon as the engine has ended, which takes a moment
    wait_for(lambda: not any(map(is_alive, processes)), "the end of the engine and of what it has started")
    with pytest.raises(InputError) as gone:
        program.ask()
    assert gone.value.condition == "ENGINE_DEAD", "nobody starts it again, so nobody waits"


def test_what_a_dead_engine_leaves_behind_is_ended_and_no_zombie_stays(start: Start) -> None:
    program = start("leaving")
    program.ask()
    engine, left = program.processes()
    os.kill(engine, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{left}").exists(), "the end of what it had started")
    wait_for(lambda: not Path(f"/proc/{engine}").exists(), "no zombie")
    program.ask()
    assert program.end() == 0


def test_a_second_supervisor_is_refused_also_while_the_engine_is_away(start: Start, tmp_path: Path) -> None:
    program = start("served served served served slow")
    wait_for(lambda: program.log.exists() and "in 0.8 s" in program.log.read_text(), "a pause")
    with pytest.raises(InputError, match=f"in use by process {program.process.pid} on"):
        StateDirectory(program.state)
    assert program.end() == 1, "stopped in a pause"


def test_clients_that_send_nothing_or_nonsense_keep_nobody_waiting(start: Start, tmp_path: Path) -> None:
    program = start("slow")
    wait_for((tmp_path / "processes").exists, "an engine")
    place = str(program.state / "control.sock")
    with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as noise:
        silent.connect(place)
        noise.connect(place)
        noise.sendall(b"\x00\xff" * 1000)
        with EngineClient(program.state, patience_s=0) as client, pytest.raises(HeadgateError) as away:
            client.status()
        assert away.value.condition == "ENGINE_STARTING"
        assert program.ask() == program.processes()[0]


def test_when_to_start_again() -> None:
    assert is_passing("SPARK_GONE", has_served=False)
    assert is_passing("INTERNAL", has_served=True)
    assert not is_passing("INTERNAL", has_served=False)
    assert not is_passing("DATAFLOW_CHANGED", has_served=True)
    restarts, loops = Restarts(), 0
    for _ in range(3 * LOOP):
        restarts = restarts.died(blameless=False)
        loops += restarts.is_loop
    assert (restarts.pause_s, loops) == (LONGEST_PAUSE_S, 3)
    full = Restarts().died(blameless=True).died(blameless=True).died(blameless=True).died(blameless=True)
    assert not full.is_loop, "a full disk is no dataflow's fault"
