"""Nexmark's queries in Flink SQL, beside the others: a process of a Python that has PyFlink runs them one by one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from headgate_benchmarks.peer_packages import PINNED, installed_peers, peer_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Flink", "answers", "available", "installed", "standing", "versions"]

COLUMNS = {
    "q0": "auction bigint, bidder bigint, price bigint, at timestamp, extra string",
    "q1": "auction bigint, bidder bigint, price decimal(23, 3), at timestamp, extra string",
    "q2": "auction bigint, price bigint",
    "q3": "name string, city string, state string, auction bigint",
    "q4": "category bigint, auctions bigint, average double",
    "q5": "window_start timestamp, window_end timestamp, auction bigint, bids bigint",
    "q6": "seller bigint, auction bigint, average double",
    "q7": "auction bigint, bidder bigint, price bigint, at timestamp, extra string",
    "q8": "id bigint, name string, window_start timestamp",
}
"""The columns of its answers."""

CORRECTED = ("q4", "q6")
"""Queries whose answers are retracted and corrected."""

PYTHON = "HEADGATE_FLINK_PYTHON"
"""The environment variable that names a Python which has PyFlink."""

PATIENCE_S = 300.0
"""How long a query may take."""


def installed() -> Path | None:
    """A Python that has PyFlink: the one that the environment names, or one that was installed; ``None`` if none is."""
    named = os.environ.get(PYTHON)
    return Path(named) if named else installed_peers()


def available(progress: Callable[[str], None]) -> Path:
    """The same, installed now if need be; raises :class:`HeadgateError` where it cannot be installed."""
    return installed() or peer_python(progress)


def versions(measured: bool) -> dict[str, str]:
    """The version of Flink, if it was measured."""
    pinned = dict(package.split("==") for package in PINNED)
    named = PYTHON in os.environ
    return {"apache-flink": f"as {PYTHON} has it" if named else pinned["apache-flink"]} if measured else {}


class Flink:
    """A Flink of two slots in a process of its own; it starts when it is made and ends with :meth:`stop`."""

    def __init__(self, python: Path, log: Path) -> None:
        self._python, self._log = python, log
        self._start()

    def _start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        java = Path(sys.prefix) / "java-home"
        if java.exists():
            environment.setdefault("JAVA_HOME", java.read_text(encoding="utf-8").strip())
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen(
                [str(self._python), str(Path(__file__).with_name("flink_job.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                env=environment,
            )
        self._answered("ready")

    def run(self, query: str, events: Path, place: Path) -> None:
        """Run a query until all events of a folder are answered; answers come to ``out/QUERY`` of another one."""
        if self._process.poll() is not None:  # a query that was given up has ended it
            self._close()
            self._start()
        self._pipe(self._process.stdin).write(f"{json.dumps([query, str(events), str(place / 'out' / query)])}\n")
        self._pipe(self._process.stdin).flush()
        self._answered("done")

    def stop(self) -> None:
        """End the process."""
        self._pipe(self._process.stdin).close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)
        self._close()

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):  # input that it did not read
                self._pipe(stream).close()

    def _answered(self, wanted: str) -> None:
        ends = threading.Timer(PATIENCE_S, self._process.kill)
        ends.start()
        try:
            for line in self._pipe(self._process.stdout):
                if line.strip() == wanted:
                    return
                if line.startswith("failed "):
                    raise RuntimeError(line.strip()[7:])
        finally:
            ends.cancel()
        self._process.wait(30)
        last = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()][-1:]
        raise RuntimeError(f"the process that runs Flink has ended, or took longer than {PATIENCE_S:.0f} s: {last}")

    @staticmethod
    def _pipe(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


def answers(spark: SparkSession, query: str, place: Path) -> DataFrame:
    """What Flink answered."""
    folder = place / "out" / query
    if query not in CORRECTED:
        return spark.read.schema(COLUMNS[query]).json(str(folder))
    lines = spark.createDataFrame([(line,) for line in standing(folder)], "line string")
    return lines.selectExpr(f"from_json(line, '{COLUMNS[query]}') as row").select("row.*")


def standing(folder: Path) -> list[str]:
    """The answers that are valid at the end of a log of changes, as JSON: those that were not retracted."""
    answers: Counter[str] = Counter()
    for file in folder.rglob("*part-*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            change = json.loads(line)
            is_added = change["op"] != "d"
            answers[json.dumps(change["after" if is_added else "before"])] += 1 if is_added else -1
    return list(answers.elements())
