"""For how long dataflows have been within their service levels: a small file, renewed after every interval.

A crash loses the interval that it interrupts. Dataflows that are withdrawn are forgotten.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from headgate.model.cluster.observation import Observation
from headgate.model.level_time import LevelTime
from headgate.store.files import read_json, write_json

__all__ = ["LevelTimes"]

FILE = "level_times.json"


class LevelTimes:
    """The times of an engine's dataflows, by name."""

    def __init__(self, state: Path) -> None:
        self._file = state / FILE
        self.of = {name: LevelTime(**kept) for name, kept in (read_json(self._file) or {}).items()}

    def add(self, seen: Observation, seconds: float) -> None:
        """Take in an interval of so many seconds that ends with an observation of the last minute."""
        self.of = {
            flow.name: self.of.get(flow.name, LevelTime())
            if flow.paused or flow.figures is None
            else self.of.get(flow.name, LevelTime()).after(seen.ended, seconds, flow.figures.within)
            for flow in seen.dataflows
        }
        with suppress(OSError):  # a full disk; the next interval brings all of it again
            write_json(self._file, {name: asdict(time) for name, time in self.of.items()})
