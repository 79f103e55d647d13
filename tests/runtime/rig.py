"""Runs an engine in a process of its own, feeds it, and kills it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headgate.store.durable_steps import VARIABLE
from headgate.store.entries import EpochCommitted
from headgate.store.journal import read_journal
from tests.processes import PATIENCE_S, end, start

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("sluice", "weir", "lock", "gate", "race")


class Rig:
    """A folder with an engine's state, what it reads and what it writes."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rnd = random.Random(seed)
        self.rows: list[dict[str, Any]] = []
        self.side: list[dict[str, Any]] = []
        self.files = 0
        self.starts = 0
        self.kills = 0
        self.hits = 0
        """Kills at the very moment that was aimed at."""
        self.after_work = 0
        """Kills of engines that had done at least one epoch since their start."""
        self.interrupted = 0
        """Epochs that Spark had begun and not finished when the engine was killed."""
        self.committed = 0
        """Those of them whose outputs were committed: they must be delivered, and not be made again."""
        self._epochs_before = 0
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in ("in", "side", "out"):
            (folder / name).mkdir()
        for number in range(8):
            made = self._made(10, 1_000_000 + number * 10)
            self.side += made
            self._put(folder / "side" / f"{number}.json", made)
        # A file where a sink wants its folder: the sink refuses until somebody takes it away.
        (folder / "out" / "late").touch()

    def _made(self, count: int, first: int) -> list[dict[str, Any]]:
        made = []
        for number in range(first, first + count):
            at = BEGINNING + timedelta(seconds=number % 1_000_000 * 0.1)
            text = " ".join(self.rnd.sample(WORDS, 2))
            value = round(self.rnd.uniform(-5, 50), 3)
            row = {"id": number, "k": f"k{self.rnd.randrange(6)}", "v": value, "at": at.isoformat(), "text": text}
            made.append(row)
        return made

    def _put(self, path: Path, rows: Iterable[dict[str, Any]]) -> None:
        waiting = self.folder / "waiting.json"
        waiting.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        waiting.rename(path)

    def feed(self) -> None:
        """Drop a small file of new rows."""
        made = self._made(20, len(self.rows))
        self.rows += made
        self._put(self.folder / "in" / f"{self.files:06d}.json", made)
        self.files += 1

    # the process

    def start(self, aim: str | None = None) -> subprocess.Popen[bytes]:
        """Start the engine; it leads a process group and a session of its own."""
        self.starts += 1
        environment = {}
        if aim is not None:
            (self.folder / "aim").write_text(aim, encoding="utf-8")
            environment[VARIABLE] = str(self.folder / "aim")
        self._epochs_before = self.epochs()
        command = [sys.executable, "-m", "tests.runtime.killed_engine", str(self.folder), str(self.starts)]
        with (self.folder / "log").open("ab") as log:
            log.write(f"--- start {self.starts}, aim {aim}\n".encode())
        process = start(command, self.folder, **environment)
        self._processes.append(process)
        return process

    def wait(self, reached: Callable[[], bool], feeding_s: float | None = None) -> bool:
        """Wait until something holds, feeding meanwhile; says whether it came before the engine ended."""
        process = self._running
        until, next_feed = time.monotonic() + PATIENCE_S, time.monotonic()
        while not reached():
            if process.poll() is not None:
                return reached()
            assert time.monotonic() < until, f"waited {PATIENCE_S} s in vain\n{self.log()}"
            if feeding_s is not None and time.monotonic() >= next_feed:
                self.feed()
                next_feed = time.monotonic() + feeding_s
            time.sleep(0.01)
        return True

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        return self._processes[-1]

    def is_ready(self) -> bool:
        file = self.folder / "ready"
        return file.exists() and file.read_text(encoding="utf-8") == str(self._running.pid)

    def kill(self, only_driver: bool = False) -> None:
        """Kill the engine with SIGKILL: all its processes, or only the one that the user started."""
        process = self._running
        if only_driver:
            process.kill()
        else:
            self.end()
        assert process.wait(30) == -signal.SIGKILL, self.log()
        self._note_kill()

    def end(self) -> None:
        """Leave nothing behind, whatever happened."""
        for process in self._processes:
            end(process)
        self._processes.clear()

    def log(self) -> str:
        lines = (self.folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(line for line in lines if "TransformWithState" not in line and line.strip())[-6000:]

    # one life of the engine

    def killed_at_random(self, only_driver: bool = False) -> None:
        """Start, feed, and kill at a random moment, most often after it has done some epochs.

        Time alone would not do: on a busy machine the kill would come before the first epoch.
        """
        self.start()
        if self.rnd.random() < 0.9:
            enough = self.epochs() + self.rnd.randrange(1, 8)
            assert self.wait(lambda: self.is_ready() and self.epochs() >= enough, 0.3), self.log()
            moment = time.monotonic() + self.rnd.uniform(0.0, 2.0)
        else:
            moment = time.monotonic() + self.rnd.uniform(2.0, 15.0)
        assert self.wait(lambda: time.monotonic() >= moment, 0.3), self.log()
        self.kill(only_driver)

    def killed_at(self, aim: str, within_s: float = 60.0) -> bool:
        """Start and feed until it kills itself at a moment; says whether that moment came."""
        process = self.start(aim)
        if self.wait(self.is_ready, 1.0):
            moment = time.monotonic() + within_s
            self.wait(lambda: time.monotonic() >= moment, 0.3)
        if process.poll() is None:
            self.kill()
            return False
        self.end()
        assert process.returncode == -signal.SIGKILL, self.log()
        self._note_kill()
        self.hits += 1
        return True

    def epochs(self) -> int:
        """How many epochs Spark has committed, in all fragments there are."""
        return sum(_last(folder / "checkpoint" / "commits") + 1 for folder in self._fragments())

    def _fragments(self) -> list[Path]:
        return list((self.folder / "state").glob("fragments/*"))

    def _note_kill(self) -> None:
        """Count a kill, and what it interrupted."""
        self.kills += 1
        self.after_work += self.epochs() > self._epochs_before
        for folder in self._fragments():
            begun = _last(folder / "checkpoint" / "offsets")
            if begun > _last(folder / "checkpoint" / "commits"):
                self.interrupted += 1
                commits = [entry for _, entry in read_journal(self.folder / "state" / "journal", EpochCommitted)]
                mine = [entry.epoch for entry in commits if entry.origin.startswith(folder.name)]
                self.committed += mine[-1:] == [begun]

    def finish(self) -> None:
        """Let it read everything, go idle and stop."""
        self.feed()
        far = {"id": -1, "k": "k0", "v": -1.0, "at": (BEGINNING + timedelta(days=9)).isoformat(), "text": ""}
        # Rows at v <= 0 do not reach the window: this one must, and is taken out of the comparison.
        self._put(self.folder / "last.json", [{**far, "v": 1.0}])
        (self.folder / "finish").touch()
        process = self.start()
        self.wait(lambda: process.poll() is not None)
        self.end()
        assert process.returncode == 0, self.log()


def _last(folder: Path) -> int:
    """The last number of a log of Spark's."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


@contextmanager
def rig_in(folder: Path, seed: int) -> Iterator[Rig]:
    """A rig whose processes end with the block."""
    rig = Rig(folder, seed)
    try:
        yield rig
    finally:
        rig.end()
