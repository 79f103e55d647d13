"""An engine in processes of its own: fed with files, changed by requests, killed, and started again.

All that the judge needs to know is noted on the way, with the clock of this process.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from headgate.api.client import EngineClient
from headgate.errors import HeadgateError
from tests.judge.flows import Flow
from tests.judge.history import Arrival, Change, History, Kill
from tests.judge.processes import Starts, WarmStarts
from tests.judge.verdict import Verdict, judge

__all__ = ["Rig", "rig_in"]

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE_S = float(os.environ.get("HEADGATE_TEST_PATIENCE_S", "240"))
"""How long to wait for what must come; a machine with much else to do may need more."""

PAUSE_S, QUIET_S, MISSING_S = 1.0, 4.0, 60.0
"""How long nothing must come until all has come: on a busy machine the first micro-batch takes half a minute."""

AWAY = ("ENGINE_GONE", "NO_ENGINE", "ENGINE_DEAD", "NOT_READY", "ENGINE_STARTING", "ENGINE_RESTARTING")
"""Conditions that say nothing about the request: nobody was there to answer it."""


Ask = Callable[[EngineClient, str], object]
"""Sends a request with an id."""


class Rig:
    """A folder with what an engine reads, keeps and writes, and the history of it."""

    def __init__(self, folder: Path, seed: int, *arguments: str, starts: Starts) -> None:
        self.folder, self.state, self.arguments = folder, folder / "state", arguments
        self._starts = starts
        self.rnd = random.Random(seed)
        self.history = History()
        self.flows: list[Flow] = []
        self.judge: Callable[[History, Sequence[Flow], Path], Verdict] = judge
        self.restart_s: list[float] = []
        self.engine: psutil.Process | None = None
        self._feed_lock = threading.Lock()
        self._rows = self._files = self._modified_ns = 0
        self._feeding, self._is_over = threading.Event(), False
        self._open: tuple[str, Ask, str]
        """The last change that was asked for: its kind, the request and its id."""

        (folder / "in").mkdir()
        threading.Thread(target=self._feeder, daemon=True).start()

    # what it reads

    def feed(self, rows: int | None = None, seconds_later: float = 0.0) -> None:
        """Move a file of new rows into the source's folder; names and sizes say nothing about the order."""
        with self._feed_lock:
            count = rows if rows is not None else self.rnd.choice([1, 2, 3, 8, 20])
            made = [self._row(self._rows + number, seconds_later) for number in range(count)]
            if seconds_later:  # it has to pass the filter to close the windows
                made[0]["v"] = 1.0
            self._rows += count
            self._files += 1
            name = f"{self.rnd.randrange(16**6):06x}-{self._files}.json"
            waiting = self.folder / "waiting"
            waiting.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
            # Spark knows milliseconds.
            self._modified_ns = max(time.time_ns(), self._modified_ns + 4_000_000)
            os.utime(waiting, ns=(self._modified_ns, self._modified_ns))
            began = time.monotonic()
            waiting.rename(self.folder / "in" / name)
            self.history.arrivals.append(Arrival(name, self._modified_ns, made, began, time.monotonic()))

    @property
    def fed_rows(self) -> int:
        """How many rows have been fed; rows are numbered."""
        return self._rows

    def has(self, flow: Flow, output: str, number: int) -> bool:
        """Whether a sink has a row of that number or a later one."""
        files = sorted(flow.sink(self.folder, output).glob("part-*"), key=lambda file: file.stat().st_mtime_ns)
        last = files[-1].read_text(encoding="utf-8").splitlines() if files else []
        return any(json.loads(line)["id"] >= number for line in last)

    def _row(self, number: int, seconds_later: float) -> dict[str, Any]:
        at = BEGINNING + timedelta(seconds=number * 0.1 + seconds_later)
        value = round(self.rnd.uniform(-5, 50), 3)
        text = f"t{number // 300}-{self.rnd.randrange(40)}"
        return {"id": number, "k": f"k{self.rnd.randrange(6)}", "v": value, "at": at.isoformat(), "text": text}

    def _feeder(self) -> None:
        while self._feeding.wait() and not self._is_over:
            self.feed()
            time.sleep(0.5)

    @contextmanager
    def fed(self) -> Iterator[None]:
        """Feed a few files a second meanwhile."""
        self._feeding.set()
        try:
            yield
        finally:
            self._feeding.clear()
            with self._feed_lock:
                pass

    def refuse(self, flow: Flow, output: str, refuses: bool = True) -> None:
        """Let a sink refuse what it gets, because there is a file where its folder was; or take it again."""
        folder = flow.sink(self.folder, output)
        away = folder.with_name(f"{output}.away")
        if refuses and folder.is_dir():
            folder.rename(away)
            folder.touch()
        elif not refuses and folder.is_file():
            folder.unlink()
            if away.exists():
                away.rename(folder)

    # the process

    def start(self) -> None:
        """Start the engine, and wait until it answers."""
        began = time.monotonic()
        arguments = ["run", "--serve", "--trigger", "200ms", "--master", "local[2]", "--state", str(self.state)]
        self.engine = self._starts.start([*arguments, *self.arguments], self.folder)
        self.wait_for(self.answers, "an engine that answers")
        self.restart_s.append(time.monotonic() - began)

    def is_alive(self) -> bool:
        """Whether the process that was started is there."""
        with suppress(psutil.Error):
            return self.engine is not None and self.engine.is_running() and self.engine.status() != "zombie"
        return False

    def answers(self) -> bool:
        """Whether the engine answers; raises if its process has ended."""
        assert self.is_alive(), f"the engine has ended\n{self.log()}"
        with suppress(HeadgateError), EngineClient(self.state, patience_s=0.0) as client:
            return client.dataflows() is not None
        return False

    def names(self) -> list[str]:
        """The dataflows that the engine lists."""
        with EngineClient(self.state) as client:
            return [flow["name"] for flow in client.dataflows()["dataflows"]]

    def end(self) -> None:
        """Kill the engine."""
        self._feeding.set()
        self._is_over = True
        self._starts.after_kill()

    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-4000:]

    def wait_for(self, reached: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        until = time.monotonic() + patience_s
        while not reached():
            assert time.monotonic() < until, f"waited {patience_s} s in vain for {what}\n{self.log()}"
            time.sleep(0.05)

    def wait_for_epoch(self, is_enough: Callable[[], bool], least_s: float) -> None:
        """Wait until rows have been delivered and some time has passed, or until it is enough."""
        began, before = time.monotonic(), self._delivered()
        while not is_enough():
            passed_s = time.monotonic() - began
            if passed_s > PATIENCE_S / 4 or (passed_s > least_s and self._delivered() > before):
                return
            time.sleep(0.02)

    def _delivered(self) -> int:
        """Files in all sinks."""
        return sum(1 for _ in (self.folder / "out").rglob("part-*"))

    # killing

    def kill(self, what: str) -> bool:
        """Kill a process; says whether there was one.

        ``supervisor`` is what was started, ``engine`` what it started, or itself where it supervises nobody; further
        ``jvm``, ``daemon`` and ``worker``.
        """
        assert self.engine is not None
        pids = [self.engine.pid] if what == "supervisor" else self._pids(what)
        if not pids:
            return False
        self._note_kill(what)
        with suppress(ProcessLookupError):
            os.kill(self.rnd.choice(pids), signal.SIGKILL)
        return True

    def killed_soon(self, what: str, after_s: float) -> Callable[[], bool]:
        """Kill a process after a while; the function that this returns waits for it and says whether there was one."""
        outcome: list[bool] = []

        def kill() -> None:
            time.sleep(after_s)
            outcome.append(self.kill(what))

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()

        def done() -> bool:
            thread.join()
            return outcome[0]

        return done

    def _pids(self, what: str) -> list[int]:
        assert self.engine is not None
        if what == "engine":
            with suppress(psutil.Error):
                engines = [one.pid for one in self.engine.children() if "python" in one.name()]
                return engines or [self.engine.pid]
        if what == "jvm":
            jvm = self._starts.jvm(self.engine)
            return [] if jvm is None else [jvm.pid]
        parent = self._starts.python(self.engine)
        daemons: list[int] = []
        workers: list[int] = []
        with suppress(psutil.Error):
            for one in [] if parent is None else parent.children(recursive=True):
                with suppress(psutil.Error):
                    (workers if one.ppid() in daemons else daemons).append(one.pid)
        return workers if what == "worker" else daemons

    def _note_kill(self, what: str) -> None:
        self.history.kills.append(Kill(time.monotonic(), what))

    @contextmanager
    def aimed(self, *aims: str) -> Iterator[Callable[[], tuple[str, str] | None]]:
        """End the engine at the first of some durable steps that it comes to in the block.

        Yields what says at which moment and step it has ended, if it has.
        """
        file = self._starts.aim
        new = file.with_suffix(".new")
        new.write_text("".join(f"{aim} {uuid.uuid4()}\n" for aim in aims), encoding="utf-8")
        new.rename(file)

        def ended() -> tuple[str, str] | None:
            for path in file.parent.glob(f"{file.name}.*.ended"):
                _, moment, name, _ = path.name.split(".")
                return moment, name
            return None

        try:
            yield ended
        finally:
            file.unlink(missing_ok=True)
            if (at := ended()) is not None:
                self._note_kill(" ".join(at))
                for path in file.parent.glob(f"{file.name}.*.ended"):
                    path.unlink()

    def recover(self) -> bool:
        """Wait for an engine that answers; starts it where it does not start itself. Says whether it had to."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if not self.is_alive():
                self._starts.after_kill()
                self.start()
                return True
            if self.answers():
                return False
            time.sleep(0.05)
        raise AssertionError(f"no engine that answers\n{self.log()}")

    # changes

    def submit(self, *flows: Flow, update: bool = False) -> bool:
        """Submit dataflows in one request; says whether it was answered."""
        documents = [flow.document(self.folder) for flow in flows]
        self.flows += flows
        labels = {flow.name: flow.label for flow in flows}
        return self._change(
            "replace" if update else "submit",
            labels,
            lambda client, request: client.submit(documents, replace=update, request_id=request),
        )

    def withdraw(self, *names: str) -> bool:
        labels = dict.fromkeys(names)
        return self._change("withdraw", labels, lambda c, request: c.withdraw(names, request_id=request))

    def pause(self, name: str) -> bool:
        return self._change("pause", {name: None}, lambda c, request: c.pause(name, request_id=request))

    def resume(self, name: str, label: str) -> bool:
        return self._change("resume", {name: label}, lambda c, request: c.resume(name, request_id=request))

    def switch(self, name: str, task: str, alternate: str) -> bool:
        labels = {name: alternate}
        return self._change("switch", labels, lambda c, request: c.switch(name, task, alternate, request_id=request))

    def partitions(self, name: str, task: str, count: int | None) -> bool:
        return self._change("partitions", {}, lambda c, request: c.repartition(name, task, count, request_id=request))

    def _change(self, kind: str, labels: Mapping[str, str | None], ask: Ask) -> bool:
        """Make a change; if nobody answers, it stays open until :meth:`settle` asks again."""
        self._open = (kind, ask, request := str(uuid.uuid4()))
        self.history.changes.append(Change(kind, labels, time.monotonic()))
        return self._ask(ask, request)

    def _ask(self, ask: Ask, request: str) -> bool:
        change = self.history.changes[-1]
        try:
            with EngineClient(self.state) as client:
                ask(client, request)
        except HeadgateError as error:
            if error.condition in AWAY:
                return False
            raise
        self.history.changes[-1] = replace(change, answered=time.monotonic(), made=True)
        return True

    def settle(self) -> None:
        """After a restart: look what is there, and ask again for the change that was not answered."""
        change = self.history.changes[-1]
        if change.answered is not None:
            return
        kind, ask, request = self._open
        there = set(self.names())
        seen = time.monotonic()
        wanted = {name: label is not None for name, label in change.labels.items()}
        if kind in ("submit", "withdraw"):
            shown = {name: name in there for name in wanted}
            if len({shown[name] == wanted[name] for name in wanted}) > 1:
                self.history.contradictions.append(f"half of a {kind} is there: {shown}")
            if shown == wanted:
                self.history.changes[-1] = replace(change, answered=seen, made=True)
        try:
            while not self._ask(ask, request):
                self.recover()
        except HeadgateError as error:
            made = self.history.changes[-1].made
            text = f"a {kind} was asked again with its request id and refused ({error.condition})"
            self.history.contradictions.append(f"{text}; it had {'' if made else 'not '}been made")

    # the end

    def finish(self) -> Verdict:
        """Let it read everything, and judge what its sinks hold."""
        for flow in self.flows:
            for output in flow.outputs:
                self.refuse(flow, output, refuses=False)
        self.feed(40)
        self.feed(1, seconds_later=9 * 86_400)
        verdict = self._until_right_or_quiet()
        self.end()
        return verdict

    def _until_right_or_quiet(self) -> Verdict:
        """Wait until the sinks are right, or nothing comes any more; for rows that are missing, a good while.

        While rows come, nothing is lost: a busy machine may take long to read the rest.
        """
        last, before, judged = 0.0, -1, -1
        verdict = Verdict(Counter(lost=1))
        while True:
            now, files = time.monotonic(), self._delivered()
            if files != before:
                before, last = files, now
            if now - last > PAUSE_S and judged != files:  # judging takes time that the engine needs
                verdict, judged = self.judge(self.history, self.flows, self.folder), files
            quiet_s = MISSING_S if verdict.counts["lost"] else QUIET_S
            if verdict.is_right or now - last > PATIENCE_S or (now - last > quiet_s and self.answers()):
                return verdict
            time.sleep(0.3)


@contextmanager
def rig_in(folder: Path, seed: int, *arguments: str, starts: Starts | None = None) -> Iterator[Rig]:
    """A rig whose engine ends with the block, as do the processes that it is started from if none are given."""
    own = WarmStarts() if starts is None else starts
    rig = Rig(folder, seed, *arguments, starts=own)
    try:
        yield rig
    finally:
        rig.end()
        if starts is None:
            own.close()
