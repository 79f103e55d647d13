"""The last hour of what was measured, in memory: a page opens with its past drawn, and asks no file for it."""

from __future__ import annotations

import threading
import time
from array import array
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.model.cluster.observation import Observation
from headgate.service.console.series import Series
from headgate.store.observations import ObservationHistory

__all__ = ["FLOW", "TASK", "FlowMoment", "Recent", "flow_moments"]

KEPT_S = 3600.0
FLOWS_KEPT, TASKS_KEPT = 720, 120
"""Moments of a dataflow (an hour of intervals of 5 s), and of a task."""

FLOW = ("in_per_s", "out_per_s", "waiting", "p50_s", "p95_s", "p99_s")
TASK = ("in_per_s", "out_per_s", "cores")
LOOK_EVERY_S = 1.0
LONG_BYTES, REST = 4_000_000, 3.0
"""A history of more is read beside the requests, which see its end meanwhile; between observations it rests."""

NEWEST = 6
"""Whole observations that are kept."""


@dataclass(frozen=True, slots=True)
class FlowMoment:
    """A dataflow in an interval; what is not known is ``None``."""

    in_per_s: float | None = None
    out_per_s: float | None = None
    waiting: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        return {name: getattr(self, name) for name in FLOW}


class Recent:
    """Reads what an engine appends to its history, at most once a second, and keeps it as series."""

    def __init__(self, state: Path, kept_s: float = KEPT_S) -> None:
        self._history = ObservationHistory(state / "observations")
        self._kept_s = kept_s
        self._lock = threading.Lock()
        self._past: threading.Thread | None = None
        self._looked = 0.0
        self._seen: Observation | None = None
        """The newest, until the past has been read."""

        self._ended = array("d")
        self._flows: dict[str, Series] = {}
        self._tasks: dict[str, Series] = {}
        self._machines: dict[str, Series] = {}
        self._moments: Mapping[str, FlowMoment] = {}
        self._last: Observation | None = None
        self._newest: deque[Observation] = deque(maxlen=NEWEST)

    def last(self) -> Observation | None:
        """The newest observation; everything that came since is taken in.

        A long past is read beside the first requests, which see the newest interval until then.
        """
        if self._past is None:
            self._past = threading.Thread(target=self._catch_up, args=(REST,), name="console-past", daemon=True)
            if self._history.size > LONG_BYTES:
                self._past.start()
            else:
                self._catch_up()
        if self._past.is_alive():
            return self._end()
        if time.monotonic() - self._looked >= LOOK_EVERY_S or self._last is None:
            self._catch_up()
        return self._last

    def _end(self) -> Observation | None:
        """The newest observation, looked for every few seconds while the past is read."""
        if time.monotonic() - self._looked >= NEWEST * LOOK_EVERY_S or self._seen is None:
            self._looked, self._seen = time.monotonic(), self._history.last()
            self._moments = {} if self._seen is None else flow_moments(self._seen)
        return self._seen

    def _catch_up(self, rest: float = 0.0) -> None:
        """Take in what came since; with ``rest``, so that requests meanwhile get most of the processor."""
        with self._lock:
            since = self._last.ended if self._last is not None else time.time() - self._kept_s
            began = time.monotonic()
            time.sleep(rest)
            for observation in self._history.read(since):
                self._take(observation)
                time.sleep(rest * (time.monotonic() - began))
                began = time.monotonic()
            self._looked = time.monotonic()

    def newest(self) -> Sequence[Observation]:
        """The last half minute, oldest first."""
        last = self.last()
        return list(self._newest) or ([] if last is None else [last])

    def moments(self) -> Mapping[str, FlowMoment]:
        """The dataflows in the last interval."""
        self.last()
        return self._moments

    def times(self, count: int = FLOWS_KEPT) -> list[float]:
        """When the newest intervals ended, oldest first."""
        self.last()
        return list(self._ended[-count:])

    def flow(self, name: str, column: str, count: int = FLOWS_KEPT) -> list[float | None]:
        """A column of a dataflow (see :data:`FLOW`)."""
        series = self._flows.get(name)
        return [] if series is None else series.last(column, count)

    def task(self, signature: str, column: str, count: int = TASKS_KEPT) -> list[float | None]:
        """A column of a task (see :data:`TASK`)."""
        series = self._tasks.get(signature)
        return [] if series is None else series.last(column, count)

    def machine(self, name: str, count: int = TASKS_KEPT) -> list[float | None]:
        """How busy a machine was."""
        series = self._machines.get(name)
        return [] if series is None else series.last("busy", count)

    def _take(self, seen: Observation) -> None:
        age = len(self._ended)
        self._ended.append(seen.ended)
        if len(self._ended) >= 2 * FLOWS_KEPT:
            del self._ended[:-FLOWS_KEPT]
        self._moments = flow_moments(seen)
        tasks = {
            task.task: {
                "in_per_s": seen.rate_in_per_s(task),
                "out_per_s": seen.rate_out_per_s(task),
                "cores": None if task.profile is None else seen.rate_in_per_s(task) * task.profile.cpu_s_per_row,
            }
            for task in seen.tasks
        }
        for name in self._moments.keys() - self._flows.keys():
            self._flows[name] = Series(FLOW, FLOWS_KEPT, age)
        for task in tasks.keys() - self._tasks.keys():
            self._tasks[task] = Series(TASK, TASKS_KEPT, age)
        for name, flow in self._flows.items():
            flow.append(self._moments[name].as_dict() if name in self._moments else {})
        for signature in [task for task in self._tasks if task not in tasks]:
            del self._tasks[signature]
        for signature, values in tasks.items():
            self._tasks[signature].append(values)
        busy = {machine.name: machine.busy for machine in seen.machines if not machine.is_gone}
        for name in busy.keys() - self._machines.keys():
            self._machines[name] = Series(("busy",), TASKS_KEPT, age)
        for name, series in self._machines.items():
            series.append({"busy": busy.get(name)})
        self._last = seen
        self._newest.append(seen)


def flow_moments(seen: Observation) -> dict[str, FlowMoment]:
    """What an interval says of each dataflow: rows taken and put out, rows that wait, latency at its slowest sink."""
    sums: dict[str, dict[str, float]] = defaultdict(dict)
    users = {task.task: task.dataflows for task in seen.tasks} | {sink.task: sink.dataflows for sink in seen.sinks}
    for source in seen.sources:
        for name in source.dataflows:
            _add(sums[name], "in_per_s", source.rows_taken / seen.seconds)
    for fragment in seen.fragments:
        if fragment.rows_behind is not None:
            for name in {name for task in fragment.tasks for name in users.get(task, ())}:
                _add(sums[name], "waiting", fragment.rows_behind)
    for sink in seen.sinks:
        for name in sink.dataflows:
            _add(sums[name], "out_per_s", sink.rows / seen.seconds)
            if sink.sojourn is not None:
                for column in ("p50_s", "p95_s", "p99_s"):
                    sums[name][column] = max(sums[name].get(column, 0.0), getattr(sink.sojourn, column))
    return {name: FlowMoment(**values) for name, values in sums.items()}


def _add(sums: dict[str, float], name: str, value: float) -> None:
    sums[name] = sums.get(name, 0.0) + value
