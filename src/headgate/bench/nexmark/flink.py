"""Nexmark's queries in Flink SQL, beside the others: a process of a Python that has PyFlink runs them one by one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from headgate.bench.peer_packages import peer_python
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["QUERIES", "Flink", "answers", "at_hand"]

QUERIES = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8")
"""Query 6 averages over rows of a stream that is put right again and again, which Flink SQL does not do."""

COLUMNS = {
    "q0": "auction bigint, bidder bigint, price bigint, at timestamp, extra string",
    "q1": "auction bigint, bidder bigint, price decimal(23, 3), at timestamp, extra string",
    "q2": "auction bigint, price bigint",
    "q3": "name string, city string, state string, auction bigint",
    "q4": "category bigint, auctions bigint, average double",
    "q5": "window_start timestamp, window_end timestamp, auction bigint, bids bigint",
    "q7": "auction bigint, bidder bigint, price bigint, at timestamp, extra string",
    "q8": "id bigint, name string, window_start timestamp",
}
"""The columns of its answers."""


PYTHON = "HEADGATE_FLINK_PYTHON"
"""The environment variable that names a Python which has PyFlink."""


def at_hand(progress: Callable[[str], None]) -> Path | None:
    """A Python that has PyFlink: the one that the environment names, or one that is installed apart; else none."""
    named = os.environ.get(PYTHON)
    if named:
        return Path(named)
    try:
        return peer_python(progress)
    except HeadgateError as error:
        progress(f"PyFlink's figures are left out: {error.message}")
        return None


class Flink:
    """A Flink of two slots in a process of its own; it starts when it is made and ends with :meth:`stop`."""

    def __init__(self, python: Path, events: Path, log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [str(python), str(Path(__file__).with_name("flink_job.py")), str(events)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
            )
        self._answered("ready")

    def run(self, query: str, place: Path) -> None:
        """Run a query until all events are answered; answers come to ``out/QUERY`` of a folder."""
        self._pipe(self._process.stdin).write(f"{query} {place / 'out' / query}\n")
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

    def _answered(self, wanted: str) -> None:
        for line in self._pipe(self._process.stdout):
            if line.strip() == wanted:
                return
            if line.startswith("failed "):
                raise RuntimeError(f"Flink cannot run the query: {line.strip()[7:]}")
        raise RuntimeError("the process that runs Flink has ended; see its log")

    @staticmethod
    def _pipe(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


def answers(spark: SparkSession, query: str, place: Path) -> DataFrame:
    """What Flink answered."""
    return spark.read.schema(COLUMNS[query]).json(str(place / "out" / query))
