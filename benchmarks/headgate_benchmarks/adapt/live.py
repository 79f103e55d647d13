"""One world under one policy, live: a cluster of Spark workers, ``headgate run``, a generator, and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headgate.api.client import EngineClient
from headgate.documents import parse
from headgate.documents.document import to_document
from headgate.errors import HeadgateError
from headgate.machines.local import LocalProvider
from headgate_benchmarks.adapt.sinks import FOLDER
from headgate_benchmarks.adapt.worlds import Scenario, due_times
from headgate_benchmarks.on_spark import QUICK_JVM
from headgate_benchmarks.study import Progress

__all__ = ["STATIC", "Pace", "Ran", "run_live"]

STATIC = {"static-peak": Scenario.peak, "static-mean": Scenario.mean}
"""Peers that decide nothing: machines for the highest rate, or for the mean one, from the beginning to the end."""

USED = 0.7
"""The utilisation for which machines are there at the beginning, and all the time for static peers."""

EVERY_S = 0.25
FIRST = 10**8
"""The number of the first row: all numbers are of one length."""

PATIENCE_S = 300.0
CONTROL = """[control]
decide_every = "{every:g}s"
window = "{window:g}s"
billing_period = "{period:g}s"
cooldown = "2s"
shrink_after = "10s"
floor = "{period:g}s"
freeze = "{period:g}s"
horizon = "{horizon:g}s"
reallocate_after = "2s"
catch_up = "{window:g}s"
changes_per_hour = 360
max_machines = {most}
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """How time is compressed: an hour is ``period_s``, and so are guard rails."""

    span_s: float = 360.0
    warm_s: float = 40.0
    every_s: float = 10.0
    window_s: float = 20.0
    period_s: float = 120.0
    drain_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Ran:
    """Where what a run has left is, and when it was."""

    folder: Path
    began: float
    ended: float
    generated: int
    controller_s: float
    """CPU seconds of the controller."""

    running_s: float
    """For how long that was."""

    load: tuple[float, float]
    """The machine's, at the beginning and at the end."""

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def cluster(self) -> Path:
        return self.folder / "cluster"


class Generator:
    """Drops files of the rows that are due, on time whatever the engine does, and notes when each row came."""

    def __init__(self, folder: Path) -> None:
        self._source, self._log = folder / "in", folder / "generated.jsonl"
        self._source.mkdir()
        self._log.touch()
        self.rows = self.files = 0

    def drop(self, count: int) -> None:
        if not count:
            return
        ids = range(FIRST + self.rows, FIRST + self.rows + count)
        hidden = self._source / f".{self.files}"
        # Rows of equal length, so that the bytes that wait say how many rows that is.
        hidden.write_text("".join(f'{{"id": {n}, "way": "-"}}\n' for n in ids))
        hidden.rename(self._source / f"{self.files:07d}.json")
        at = time.time()
        with self._log.open("a") as log:
            log.writelines(json.dumps({"id": n, "at": at}) + "\n" for n in ids)
        self.rows, self.files = self.rows + count, self.files + 1

    def follow(self, due: Iterator[tuple[float, int]], stop: threading.Event) -> None:
        began = time.monotonic()
        for at, count in due:
            if stop.wait(max(began + at - time.monotonic(), 0.0)):
                return
            self.drop(count)


def run_live(scenario: Scenario, policy: str, seed: int, pace: Pace, folder: Path, progress: Progress) -> Ran:
    """Live through a world under a policy."""
    (folder / "sinks").mkdir(parents=True)
    for flow in scenario.flows:
        (folder / "sinks" / f"{flow.name}.jsonl").touch()
    generator = Generator(folder)
    provider = LocalProvider.up(folder / "cluster", usual=[scenario.machine])
    try:
        first = STATIC[policy](scenario) if policy in STATIC else scenario.rate(0.0)
        for _ in range(scenario.machines_for(first, USED)):
            provider.acquire(scenario.machine.name)
        provider.wait_until_settled(PATIENCE_S)
        with _engine(scenario, policy, pace, folder) as process:
            return _lived(scenario, policy, seed, pace, folder, generator, provider, process, progress)
    finally:
        with suppress(HeadgateError):
            provider.down()


@contextmanager
def _engine(scenario: Scenario, policy: str, pace: Pace, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """``headgate run``, as a user starts it."""
    most = scenario.machines_for(scenario.peak(), USED) + 1
    (folder / "headgate.toml").write_text(
        CONTROL.format(
            every=pace.every_s, window=pace.window_s, period=pace.period_s, most=most, horizon=pace.period_s / 2
        )
    )
    files = []
    for flow, document in scenario.documents(str(folder / "in")):
        (folder / f"{flow.name}.json").write_text(json.dumps(document))
        if not flow.joins:
            files.append(f"{flow.name}.json")
    decides = ("threshold", "recommend") if policy in STATIC else (policy, "auto")
    conf = {
        "spark.executor.memory": "512m",
        "spark.driver.memory": "1g",
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.driver.extraJavaOptions": QUICK_JVM,
    }
    command = [sys.executable, "-m", "headgate", "run", *files, "--serve", "--state", "state", "--cluster", "cluster"]
    command += ["--policy", decides[0], "--mode", decides[1], "--trigger", "500ms"]
    command += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    with (folder / "run.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, FOLDER: str(folder / "sinks")},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(90)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def _lived(
    scenario: Scenario,
    policy: str,
    seed: int,
    pace: Pace,
    folder: Path,
    generator: Generator,
    provider: LocalProvider,
    process: subprocess.Popen[bytes],
    progress: Progress,
) -> Ran:
    label = f"{scenario.name}, {policy}"
    client = _client(folder / "state", process)
    flows = [flow.name for flow in scenario.flows if not flow.joins]
    generator.drop(20)
    _wait(lambda: _rows(folder) >= 20, process, "the first rows")
    if policy in STATIC:  # whoever sizes by hand cuts tasks by hand, too
        cores = scenario.machine.cores * scenario.machines_for(STATIC[policy](scenario), USED)
        client.repartition(flows[0], "score", cores)
    stop = threading.Event()
    warm = ((step * EVERY_S, round(scenario.rate(0.0) * EVERY_S)) for step in range(int(pace.warm_s / EVERY_S)))
    progress(f"{label}: warming up for {pace.warm_s:.0f} s")
    generator.follow(warm, stop)
    began, load = time.time(), os.getloadavg()[0]
    usage = [(began - 1e6, flows)]
    feeding = threading.Thread(
        target=generator.follow, args=(due_times(scenario, pace.span_s, seed, EVERY_S), stop), daemon=True
    )
    feeding.start()
    try:
        for at, what in sorted(_story(scenario, pace, client, provider, flows, usage), key=lambda each: each[0]):
            while (left := began + at - time.time()) > 0:
                time.sleep(min(left, 5.0))
                if process.poll() is not None:
                    raise RuntimeError(f"{label}: the engine ended; see {folder / 'run.log'}")
            said = what()
            if said:
                progress(f"{label}, {time.time() - began:.0f} s: {said}")
        feeding.join()
    finally:
        stop.set()
    ended = began + pace.span_s
    facts = client.policy()
    _drained(folder, generator.rows * len(scenario.flows), pace.drain_s)
    _write_usage(folder, scenario, usage)
    return Ran(
        folder,
        began,
        ended,
        generator.rows,
        facts["controller_cpu_s"],
        facts["controller_running_s"],
        (load, os.getloadavg()[0]),
    )


def _story(
    scenario: Scenario,
    pace: Pace,
    client: EngineClient,
    provider: LocalProvider,
    flows: list[str],
    usage: list[tuple[float, list[str]]],
) -> Iterator[tuple[float, Callable[[], str]]]:
    """What happens when, beside the rows that come."""

    def join(name: str, document: dict[str, Any]) -> str:
        client.submit([to_document(parse(json.dumps(document), "json").dataflow)])
        flows.append(name)
        usage.append((time.time(), list(flows)))
        return f"dataflow '{name}' is submitted"

    def kill_machine() -> str:
        machine = next(each for each in provider.list() if not each.is_gone)
        worker = provider.process(machine.name)
        if worker is not None:
            worker.send(signal.SIGKILL)
        return f"machine {machine.name} is killed"

    def kill_engine() -> str:
        os.kill(client.status()["process"], signal.SIGKILL)
        return "the engine is killed"

    def refuse(most: int | None) -> str:
        provider.limit(most)
        return "the provider has machines again" if most is not None and most > 100 else "the provider has no machines"

    for flow, document in scenario.documents(str(provider.folder.parent / "in")):
        if flow.joins:
            yield flow.joins * pace.span_s, partial(join, flow.name, document)
    for fault in scenario.faults:
        at = fault.at * pace.span_s
        if fault.kind == "machine":
            yield at, kill_machine
        elif fault.kind == "engine":
            yield at, kill_engine
        else:
            yield at, lambda: refuse(0)
            yield at + pace.span_s / 6, lambda: refuse(1_000)
    looks = int(pace.span_s / 30)
    for number in range(1, looks + 1):
        yield number * pace.span_s / looks, lambda: _seen(client)


def _seen(client: EngineClient) -> str:
    try:
        facts, machines = client.policy(), client.machines()["machines"]
    except HeadgateError as error:
        return error.message
    last = facts["last"] or {"sentences": ["nothing was decided yet"]}
    there = sum(machine["state"] in ("ready", "starting") for machine in machines)
    return f"{there} machines; {'; '.join(last['sentences'])} {facts['failure']}"


def _client(state: Path, process: subprocess.Popen[bytes]) -> EngineClient:
    _wait(lambda: (state / "lock").exists(), process, "a state directory")
    client = EngineClient(state, patience_s=PATIENCE_S)
    _wait(lambda: bool(client.status()["dataflows"]), process, "the dataflows")
    return client


def _rows(folder: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in (folder / "sinks").glob("*.jsonl"))


def _drained(folder: Path, rows: int, most_s: float) -> None:
    """Wait until all rows are at the sinks, for a while."""
    until = time.monotonic() + most_s
    while _rows(folder) < rows and time.monotonic() < until:
        time.sleep(0.5)


def _wait(reached: Callable[[], bool], process: subprocess.Popen[bytes], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not reached():
        if process.poll() is not None:
            raise RuntimeError(f"the engine ended with {process.returncode} before {what} came")
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not come within {PATIENCE_S:g} s")
        time.sleep(0.1)


def _write_usage(folder: Path, scenario: Scenario, usage: list[tuple[float, list[str]]]) -> None:
    """Who used the tasks: all share the first two, and each has a sink of its own."""
    shared = scenario.tasks - 1
    with (folder / "usage.jsonl").open("w") as file:
        for at, flows in usage:
            file.write(json.dumps({"at": at, "tasks": [flows] * shared + [[flow] for flow in flows]}) + "\n")
