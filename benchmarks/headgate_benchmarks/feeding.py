"""A feed of small files for an engine, its micro-batches, and how soon a change shows."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate_benchmarks.on_spark import drop, readings

__all__ = ["TRIGGER_S", "Feeder", "batches_of", "fed", "first_row"]

TRIGGER_S = 0.5


@contextmanager
def fed(spark: Any, place: Path, seed: int, sensors: int = 5_000) -> Iterator[tuple[Any, Feeder]]:
    """An engine, and a feeder of a folder for its dataflows to read."""
    from headgate.runtime.engine.engine import Engine

    source = place / "in"
    source.mkdir(parents=True)
    with Engine(place / "state", spark=spark, trigger_s=TRIGGER_S) as engine:
        yield engine, Feeder(source, random.Random(seed), sensors)


class Feeder:
    """Drops a file of 100 rows every tenth of a second, when it is asked often enough; the first file at once."""

    def __init__(self, source: Path, draw: random.Random, sensors: int) -> None:
        self.source, self.draw, self.sensors = source, draw, sensors
        self.number, self.began = 0, time.monotonic()
        self._drop()

    def feed(self) -> None:
        due = int((time.monotonic() - self.began) * 10)
        for _ in range(min(due - self.number, 20)):
            self._drop()
        time.sleep(0.005)

    def _drop(self) -> None:
        drop(self.source, self.number, readings(100, self.draw, self.number * 100, self.sensors))
        self.number += 1


def batches_of(fragment: Any, feeder: Feeder, warm: int, wanted: int) -> dict[int, float]:
    """Times of the next micro-batches that have rows, by number, in milliseconds; some pass first to warm up."""
    seen: dict[int, float] = {}
    began = fragment.last.epoch
    records = fragment.context.records.taken()
    while len(seen) < warm + wanted:
        feeder.feed()
        progress = fragment.query.lastProgress
        with_rows = {each.epoch for each in list(records) if each.fragment == fragment.fragment.id and each.rows_in}
        if progress and progress["batchId"] in with_rows and progress["batchId"] > began:
            seen[progress["batchId"]] = float(progress["durationMs"]["triggerExecution"])
        reason = fragment.failure
        assert reason is None, reason
    return dict(list(seen.items())[warm:])


def first_row(change: Callable[[], None], out: Path, feeder: Feeder, before: int = 0) -> float:
    """Seconds from a request to the first new file at ``out``; rows keep coming meanwhile."""
    began = time.monotonic()
    thread = threading.Thread(target=change)
    thread.start()
    while not out.exists() or len(list(out.glob("*.parquet"))) <= before:
        feeder.feed()
        assert time.monotonic() - began < 60, f"no row at {out}"
    took = time.monotonic() - began
    thread.join()
    return took
