"""Four honest dataflows: what goes in, what has come out, what must have, and how long it took."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headgate_benchmarks.on_spark import drop

__all__ = ["COLUMNS", "Neighbours"]

COLUMNS = "id bigint, k string, v double"
ROWS = 50

COUNTED: dict[str, Any] = {"type": "count", "config": {"key": ["k"]}}
STEPS: dict[str, dict[str, Any]] = {
    "a": {"type": "filter", "config": {"where": "v > 0 and k <> 'c0nfidential'"}},
    "b": {"type": "filter", "config": {"where": "v <= 0"}},
    "c": {"type": "sql", "config": {"query": "select id, k, v * 2 as v from `in` where id % 3 = 0"}},
    "d": COUNTED,
}
KEEPS: dict[str, Callable[[int], bool]] = {
    "a": lambda n: n % 7 > 3,
    "b": lambda n: n % 7 <= 3,
    "c": lambda n: n % 3 == 0,
    "d": lambda n: n >= 0,
}
"""Which rows come out, as functions of a row's number, which the engine does not use."""


class Neighbours:
    """Lets rows in, one file after the other, each when all have put out what they made of the one before."""

    def __init__(self, folder: Path, patience_s: float) -> None:
        self._in, self._out = folder / "in", folder / "honest"
        self._patience_s, self._files = patience_s, 0
        self._made = {name: Counter[int]() for name in STEPS}
        self._seen: set[Path] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.rounds: list[tuple[float, float]] = []
        """When each began, and how long it took."""

    def documents(self) -> list[dict[str, Any]]:
        """The honest dataflows."""
        made = []
        for name, step in STEPS.items():
            source = {"id": "in", "type": "read_files", "config": {"path": str(self._in), "columns": COLUMNS}}
            out = {"id": "out", "type": "write_files", "config": {"path": str(self._out / name)}, "inputs": ["step"]}
            tasks = [source, {"id": "step", **step, "inputs": ["in"]}, out]
            made.append({"name": name, "owner": "honest", "tasks": tasks})
        return made

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Let no more rows in, and wait for the last."""
        self._stopping.set()
        self._thread.join(2 * self._patience_s)

    def await_rounds(self, count: int, until: float) -> None:
        """Wait until so many more rounds that begin from now on are done, but not for ever."""
        began = time.monotonic()
        while time.monotonic() < until and sum(at >= began for at, _ in self.rounds) < count:
            time.sleep(0.05)

    def took_s(self, since: float, until: float) -> list[float]:
        """How long the rounds took that began in a span of time."""
        return [seconds for at, seconds in self.rounds if since <= at < until]

    def is_exact(self) -> bool:
        """Whether all rows that must have come out did, once."""
        self._read()
        return all(self._made[name] == self._wanted(name) for name in STEPS)

    def wrong(self) -> dict[str, tuple[int, int]]:
        """Rows that are missing, and rows too many, of those that are not exact."""
        lists = {name: (self._wanted(name) - self._made[name], self._made[name] - self._wanted(name)) for name in STEPS}
        return {name: (less.total(), more.total()) for name, (less, more) in lists.items() if less or more}

    def round(self) -> None:
        """Let rows in and wait until all is out."""
        numbers = range(self._files * ROWS, (self._files + 1) * ROWS)
        rows = ({"id": n, "k": f"{'a' * 24}{n % 10}", "v": n % 7 - 3} for n in numbers)
        self._files += 1
        began = time.monotonic()
        drop(self._in, self._files, "".join(json.dumps(row) + "\n" for row in rows))
        while not self._all_out() and time.monotonic() < began + self._patience_s:
            time.sleep(0.02)
        self.rounds.append((began, time.monotonic() - began))

    def _follow(self) -> None:
        while not self._stopping.wait(0.1):
            self.round()

    def _all_out(self) -> bool:
        self._read()
        return all(self._made[name].total() >= self._wanted(name).total() for name in STEPS)

    def _wanted(self, name: str) -> Counter[int]:
        return Counter(n for n in range(self._files * ROWS) if KEEPS[name](n))

    def _read(self) -> None:
        """Read the files that have come."""
        for name, made in self._made.items():
            for file in (self._out / name).glob("*.json"):
                if file not in self._seen:
                    self._seen.add(file)
                    made.update(json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines())
