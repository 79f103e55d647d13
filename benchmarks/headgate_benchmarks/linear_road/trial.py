"""A trial of Linear Road: traffic fed at its own pace, answers timed as they appear, and all of them validated.

Rows arrive as files: two a second, each put into the folder that the dataflow reads when its rows are due. The arrival
of a row is the moment at which its file is there. An answer is emitted when the file that holds it is seen in
the folder of its kind by a poll every 50 ms, so a response time is what a reader of the answers would see.
The first row is fed when all queries have started and are idle.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from headgate.documents import parse
from headgate_benchmarks import checkout

__all__ = ["Outcome", "Watcher", "dataflow", "example", "trial"]

POLL_S = 0.05
FILES_PER_S = 2
PATIENCE_S = 120.0
"""How long after the last row answers are waited for; those that are missing then count as late and wrong."""

NEVER_S = 3_600.0
"""What stands for the response to what was never answered."""


def example(name: str) -> ModuleType:
    """A module of the example."""
    checkout.make_importable()
    return importlib.import_module(f"examples.linear_road.{name}")


def dataflow(folder: Path, name: str = "linear_road") -> dict[str, Any]:
    """The example's dataflow as a document, reading the files of a folder and writing there too."""
    import yaml

    text = checkout.example(f"linear_road/{name}.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text.replace("out/linear_road", str(folder)))
    source = document["tasks"][0]
    config = {"path": str(folder / "in"), "format": "parquet", "columns": source["config"]["columns"]}
    source.update(type="read_files", config=config)
    return document


class Watcher(Protocol):
    """Watches a trial, once a second."""

    @property
    def switched(self) -> Mapping[str, str]:
        """The alternates that it has switched to, by task."""
        ...

    def look(self, engine: Any, since_s: float) -> bool:
        """Whether to go on feeding rows, so many seconds after the first."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial came to."""

    rows: int
    reports_per_s: float
    """In the last ten seconds."""

    right: bool
    verdict: str
    """The validator's table."""

    answers: int
    """How many are judged for time: to all that came in after the lead."""

    in_time: float
    """The share of answers that came within their deadline, of those that are judged."""

    in_time_by_kind: dict[str, float]
    p99_s: dict[str, float]
    worst_s: dict[str, float]
    first_late_s: float | None
    """How long after the start the first row came in whose answer was late."""

    beyond_in_time: float
    """The share of answers in time to what came in from then on; 1 if none was late."""

    responses: list[tuple[float, float]]
    """(arrival after the start, response), the worst of each second."""

    cpu_s: float
    seconds: float
    queries: list[list[str]]
    """The tasks that each Spark query ran at the end, in the order of the plan."""

    @property
    def held(self) -> bool:
        """Whether every answer was right and in time."""
        return self.right and self.in_time == 1.0


class _Feeder:
    """Puts files where the dataflow reads them, each when it is due."""

    def __init__(self, folder: Path, due: list[tuple[float, Path]]) -> None:
        self.folder, self.due = folder, due
        self.arrived: list[float] = []
        self.began = 0.0
        self.enough = threading.Event()

    def feed(self) -> None:
        self.began = time.time()
        for due_s, path in self.due:
            if self.enough.wait(max(self.began + due_s - time.time(), 0.0)):
                return
            os.utime(path)  # the source takes files in the order of their times
            path.rename(self.folder / path.name)
            self.arrived.append(time.time())


class _Receiver:
    """Notes when files of answers are there to be read."""

    def __init__(self, folder: Path, kinds: tuple[str, ...]) -> None:
        self.folder, self.kinds = folder, kinds
        self.seen: dict[tuple[str, str], float] = {}

    def look(self) -> None:
        for kind in self.kinds:
            place = self.folder / kind
            if place.is_dir():
                names = [entry.name for entry in os.scandir(place) if entry.name.endswith(".parquet")]
                now = time.time()
                for name in names:
                    self.seen.setdefault((kind, name), now)


def trial(
    spark: Any,
    place: Path,
    traffic: Any,
    road: Any,
    *,
    lead_s: float,
    seed: int = 0,
    alternates: Mapping[str, str] | None = None,
    watcher: Watcher | None = None,
    trigger_s: float = 0.5,
) -> Outcome:
    """Run traffic through the dataflow at its own pace; answers to what came in within ``lead_s`` are not judged.

    ``alternates`` names the alternate of each task that does not run its best one.
    """
    from headgate.runtime.engine.engine import Engine
    from headgate_benchmarks.cpu_clock import cpu_seconds
    from headgate_benchmarks.on_spark import keeping_house, meanwhile

    (place / "in").mkdir(parents=True)
    (place / "waiting").mkdir()
    example("make").write_tables(place, traffic, seed, road)
    due, file_of = _files(place / "waiting", traffic)
    kinds = tuple(example("validate").DEADLINES_S)
    feeder, receiver = _Feeder(place / "in", due), _Receiver(place / "answers", kinds)
    with Engine(place / "state", spark=spark, trigger_s=trigger_s) as engine:
        engine.submit(parse(json.dumps(dataflow(place)), "json").dataflow)
        for task, alternate in (alternates or {}).items():
            engine.switch("linear_road", task, alternate)
        engine.wait_until_idle()  # every query has started
        began_cpu, began = cpu_seconds(), time.monotonic()
        with keeping_house(engine), meanwhile(receiver.look, POLL_S):
            _feed(feeder, engine, watcher)
            _wait(engine)
            receiver.look()
        spent, took = cpu_seconds() - began_cpu, time.monotonic() - began
        failed, queries = engine.failures(), _queries(engine.plan)
    if failed:
        raise RuntimeError(f"the dataflow failed: {failed}")
    came = file_of < len(feeder.arrived)
    fed = _Fed(traffic.rows(came), file_of[came], feeder, receiver)
    switched = {} if watcher is None else watcher.switched
    return _judged(place, fed, lead_s, alternates or {}, switched, (spent, took), queries)


def _queries(plan: Any) -> list[list[str]]:
    """The names of the tasks of each fragment."""
    of = [(*fragment.roots, *fragment.tasks) for fragment in plan.fragments.values()]
    return [[plan.tasks[task].name.rpartition(".")[2] for task in dict.fromkeys(tasks)] for tasks in of]


def _feed(feeder: _Feeder, engine: Any, watcher: Watcher | None) -> None:
    """Feed all rows, or until a watcher has seen enough."""
    thread = threading.Thread(target=feeder.feed, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(1.0)
        if watcher is not None and not watcher.look(engine, time.time() - feeder.began):
            feeder.enough.set()


def _wait(engine: Any) -> None:
    """Wait until everything is answered, at most :data:`PATIENCE_S`."""

    def wait() -> None:
        with suppress(Exception):  # failures are read afterwards
            engine.wait_until_idle()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(PATIENCE_S)


@dataclass(frozen=True, slots=True)
class _Fed:
    """The rows that were fed, the file of each, and when files of rows and of answers were there."""

    traffic: Any
    file_of: Any
    feeder: _Feeder
    receiver: _Receiver


def _files(folder: Path, traffic: Any) -> tuple[list[tuple[float, Path]], Any]:
    """The files of a trial and when each is due; and the file of each row."""
    import numpy as np
    import pyarrow.parquet as pq

    times = traffic.columns["time"]
    # The rows of a second come in two parts.
    first_of_second = np.searchsorted(times, times)
    in_second = np.searchsorted(times, times, "right") - first_of_second
    part = (np.arange(len(times)) - first_of_second) * FILES_PER_S // in_second
    slot = (times - times[0]) * FILES_PER_S + part
    table = example("make").table_of(traffic)
    files, cuts = [], np.flatnonzero(np.diff(slot, prepend=-1))
    for number, (first, last) in enumerate(zip(cuts, [*cuts[1:], len(slot)], strict=True)):
        path = folder / f"{number:06d}.parquet"
        pq.write_table(table.slice(first, last - first), path)
        files.append((float(slot[first]) / FILES_PER_S, path))
    return files, np.searchsorted(cuts, np.arange(len(slot)), "right") - 1


def _judged(
    place: Path,
    fed: _Fed,
    lead_s: float,
    alternates: Mapping[str, str],
    switched: Mapping[str, str],
    spent: tuple[float, float],
    queries: list[list[str]],
) -> Outcome:
    import numpy as np

    validate = example("validate")
    history, usual = validate.read_history(place / "tolls.db"), np.load(place / "usual.npy")
    rows, began = fed.traffic.columns, fed.feeder.began
    expected = validate.expect(rows, history, usual, **_named(alternates))
    answers = validate.read_answers(place / "answers", fed.receiver.seen)
    if switched:
        # What can be switched to does not depend on the reports, so the queries are enough.
        asked = fed.traffic.rows(rows["type"] == 4).columns
        _accept(expected, answers, validate.expect(asked, None, usual, **_named({**alternates, **switched})))
    verdict = validate.check(expected, answers)
    arrived = _arrivals(rows, fed.file_of, fed.feeder.arrived)
    share, times, late = validate.share_in_time(answers, arrived, began + lead_s, expected.asked)
    took = {kind: np.minimum(some, NEVER_S) for kind, some in times.items()}
    first_late = min(late, default=None)
    beyond = 1.0
    if first_late is not None:
        beyond, _, _ = validate.share_in_time(answers, arrived, first_late, expected.asked)
    worst: dict[int, float] = {}
    for key, emitted in answers.emitted.items():
        if key in arrived and key[0] == "tolls":
            at = int(arrived[key] - began)
            worst[at] = max(worst.get(at, 0.0), emitted - arrived[key])
    reports = rows["time"][rows["type"] == 0]
    return Outcome(
        rows=len(fed.traffic),
        reports_per_s=float(np.count_nonzero(reports >= reports[-1] - 9)) / 10,
        right=verdict.right,
        verdict=str(verdict),
        answers=sum(map(len, times.values())),
        in_time=share,
        in_time_by_kind={kind: float(np.mean(some <= validate.DEADLINES_S[kind])) for kind, some in took.items()},
        p99_s={kind: round(float(np.quantile(some, 0.99)), 3) for kind, some in took.items()},
        worst_s={kind: round(float(np.max(some)), 3) for kind, some in took.items()},
        first_late_s=None if first_late is None else first_late - began,
        beyond_in_time=beyond,
        responses=sorted((float(at), round(took, 3)) for at, took in worst.items()),
        cpu_s=spent[0],
        seconds=spent[1],
        queries=queries,
    )


def _named(alternates: Mapping[str, str]) -> dict[str, str]:
    """Alternates by the names that the validator has for the two tasks."""
    names = {"congestion": "congestion", "travel_time": "travel"}
    return {names[task]: way for task, way in alternates.items()}


def _accept(expected: Any, answers: Any, otherwise: Any) -> None:
    """Take travel times for right that are so by the alternates that were switched to."""
    for number, given in answers.travel_times.items():
        other = otherwise.travel_times.get(number)
        if other is not None and given is not None and abs(given - other) <= 1e-6 * other:
            expected.travel_times[number] = other


def _arrivals(rows: Mapping[str, Any], file_of: Any, moments: list[float]) -> dict[Any, float]:
    """When each report and query came in, by the kind of answer and what is answered."""
    import numpy as np

    at = np.array(moments)[file_of].tolist()
    arrivals: dict[Any, float] = {}
    columns = (rows[name].tolist() for name in ("type", "vid", "time", "qid"))
    kinds = {2: "balances", 3: "expenditures", 4: "travel_times"}
    for kind, vid, second, number, moment in zip(*columns, at, strict=True):
        if kind == 0:
            arrivals["tolls", (vid, second)] = arrivals["alerts", (vid, second)] = moment
        elif kind in kinds:  # nobody waits for an answer to a weather update
            arrivals[kinds[kind], number] = moment
    return arrivals
