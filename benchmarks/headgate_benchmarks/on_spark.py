"""What benchmarks on Spark have in common: a Spark, a folder, sensors' readings, and housekeeping."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from headgate_benchmarks.checkout import make_importable

__all__ = ["QUICK_JVM", "READINGS", "drop", "keeping_house", "meanwhile", "on_spark", "one_spark", "readings"]

READINGS = "id bigint, sensor string, t double, h double, p double, zone string"
"""The columns of :func:`readings`."""


_shared: list[Any] = []
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""For short forms: a JVM that lives for minutes spends half of them in its second compiler. Without that compiler its
cache of code has 48 MB, which many queries fill; then nothing is compiled any more."""


@contextmanager
def one_spark(master: str = "local[8]", memory: str = "4g", *, quick: bool = False) -> Iterator[None]:
    """Run everything inside, under :func:`on_spark`, on one Spark: one that is shared already, or a new one."""
    if _shared:
        yield
        return
    _shared.append(_open(master, memory, quick=quick))
    try:
        yield
    finally:
        _shared.pop().stop()


@contextmanager
def on_spark(master: str = "local[2]", memory: str = "3g") -> Iterator[tuple[Any, Path]]:
    """A Spark and an empty folder; both are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    spark = _shared[-1] if _shared else _open(master, memory)
    try:
        yield spark, folder
    finally:
        if not _shared:
            spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _open(master: str, memory: str, *, quick: bool = False) -> Any:
    from headgate.runtime.spark_internals.session import open_session

    make_importable()
    java = {"spark.driver.extraJavaOptions": QUICK_JVM} if quick else {}
    return open_session(master, {"spark.driver.memory": memory, **java})


@contextmanager
def meanwhile(work: Callable[[], object], every_s: float) -> Iterator[None]:
    """Repeat something in a thread of its own."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(every_s):
            work()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def keeping_house(engine: Any) -> AbstractContextManager[None]:
    """What ``headgate run`` does once a second."""
    return meanwhile(engine.housekeep, 1.0)


def readings(count: int, draw: random.Random, first: int = 0, sensors: int = 5_000, zones: int = 20) -> str:
    """Readings of a city's sensors, as lines of JSON."""
    rows = (
        {
            "id": first + n,
            "sensor": f"s{draw.randrange(sensors)}",
            "t": round(draw.uniform(-20, 60), 2),
            "h": round(draw.uniform(0, 100), 2),
            "p": round(draw.uniform(900, 1100), 1),
            "zone": f"zone{draw.randrange(zones)}",
        }
        for n in range(count)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def drop(folder: Path, number: int, text: str) -> None:
    """Put a file into a folder, whole."""
    hidden = folder.parent / f".{folder.name}-{number}"
    hidden.write_text(text, encoding="utf-8")
    hidden.rename(folder / f"{number:06d}.json")
