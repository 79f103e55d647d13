"""A trial of Linear Road: traffic fed at its own pace, answers timed as they appear, and all of them validated.

Rows arrive as files: two a second, each put into the folder that the dataflow reads when its rows are due. The arrival
of a row is the moment at which its file is there. An answer is emitted when the file that holds it is seen in
the folder of its kind by somebody who looks every 50 ms; so what is measured is what a reader of the answers would see.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import headgate
from headgate.errors import InputError
from headgate.formats import parse

__all__ = ["Outcome", "dataflow", "example", "make_importable", "trial"]

POLL_S = 0.05
FILES_PER_S = 2
ROOT = Path(headgate.__file__).resolve().parents[2]


def make_importable() -> None:
    """Let this process and Spark's workers find the tasks of the example; before Spark is started."""
    if not (ROOT / "examples" / "linear_road").is_dir():
        told = "the benchmark runs examples/linear_road, which is not beside this installation; run it in a clone"
        raise InputError("NO_EXAMPLES", told)
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    inherited = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *inherited])


def example(name: str) -> ModuleType:
    """A module of the example."""
    return importlib.import_module(f"examples.linear_road.{name}")


def dataflow(folder: Path, name: str = "linear_road") -> dict[str, Any]:
    """The example's dataflow as a document, reading the files of a folder and writing there too."""
    import yaml

    text = (ROOT / "examples" / "linear_road" / f"{name}.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text.replace("out/linear_road", str(folder)))
    source = found["tasks"][0]
    config = {"path": str(folder / "in"), "format": "parquet", "columns": source["config"]["columns"]}
    source.update(type="read_files", config=config)
    return found


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial came to."""

    rows: int
    reports_per_s: float
    """In the last ten seconds."""

    right: bool
    found: str
    """The validator's table."""

    answers: int
    in_time: float
    """The share of answers that came within their deadline, of those that are judged."""

    p99_s: dict[str, float]
    worst_s: dict[str, float]
    first_late_s: float | None
    """How long after the start the first row came in whose answer was late."""

    responses: list[tuple[float, float]]
    """(arrival after the start, response), the worst of each second."""

    cpu_s: float
    seconds: float

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

    def feed(self) -> None:
        self.began = time.time()
        for due_s, path in self.due:
            wait_s = self.began + due_s - time.time()
            if wait_s > 0:
                time.sleep(wait_s)
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
    meanwhile_do: Callable[[Any, float], None] | None = None,
    trigger_s: float = 0.5,
) -> Outcome:
    """Run traffic through the dataflow at its own pace; answers to what came in within ``lead_s`` are not judged.

    ``alternates`` names the alternate of each task that does not run its best one. ``meanwhile_do`` is called once a
    second with the engine and the seconds since the start.
    """
    from headgate.bench.measured import cpu_seconds
    from headgate.bench.on_spark import keeping_house, meanwhile
    from headgate.runtime.engine import Engine

    (place / "in").mkdir(parents=True)
    (place / "waiting").mkdir()
    example("make").write_tables(place, traffic, seed, road)
    due, file_of = _files(place / "waiting", traffic)
    kinds = tuple(example("validate").DEADLINES_S)
    feeder, receiver = _Feeder(place / "in", due), _Receiver(place / "answers", kinds)
    began_cpu, began = cpu_seconds(), time.monotonic()
    with Engine(place / "state", spark=spark, trigger_s=trigger_s) as engine:
        engine.submit(parse(json.dumps(dataflow(place)), "json").dataflow)
        for task, alternate in (alternates or {}).items():
            engine.switch("linear_road", task, alternate)
        thread = threading.Thread(target=feeder.feed, daemon=True)
        with keeping_house(engine), meanwhile(receiver.look, POLL_S):
            thread.start()
            while thread.is_alive():
                thread.join(1.0)
                if meanwhile_do is not None:
                    meanwhile_do(engine, time.time() - feeder.began)
            engine.wait_until_idle()
            receiver.look()
        failed = engine.failures()
    if failed:
        raise RuntimeError(f"the dataflow failed: {failed}")
    spent, took = cpu_seconds() - began_cpu, time.monotonic() - began
    return _judged(place, traffic, feeder, receiver, file_of, lead_s, alternates or {}, spent, took)


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
    found, cuts = [], np.flatnonzero(np.diff(slot, prepend=-1))
    for number, (first, last) in enumerate(zip(cuts, [*cuts[1:], len(slot)], strict=True)):
        path = folder / f"{number:06d}.parquet"
        pq.write_table(table.slice(first, last - first), path)
        found.append((float(slot[first]) / FILES_PER_S, path))
    return found, np.searchsorted(cuts, np.arange(len(slot)), "right") - 1


def _judged(
    place: Path,
    traffic: Any,
    feeder: _Feeder,
    receiver: _Receiver,
    file_of: Any,
    lead_s: float,
    alternates: Mapping[str, str],
    cpu_s: float,
    seconds: float,
) -> Outcome:
    import numpy as np

    validate = example("validate")
    history, usual = validate.read_history(place / "tolls.db"), np.load(place / "usual.npy")
    named = {"congestion": alternates.get("congestion"), "travel": alternates.get("travel_time")}
    rows = traffic.columns
    expected = validate.expect(rows, history, usual, **{name: way for name, way in named.items() if way})
    answers = validate.read_answers(place / "answers", receiver.seen)
    found = validate.check(expected, answers)
    arrived = _arrivals(rows, file_of, feeder.arrived)
    share, times, _ = validate.share_in_time(answers, arrived, feeder.began + lead_s)
    late = [arrived[key] - feeder.began for key, emitted in answers.emitted.items() if _is_late(key, emitted, arrived)]
    late = [at for at in late if at >= lead_s]
    worst: dict[int, float] = {}
    for key, emitted in answers.emitted.items():
        if key in arrived and key[0] == "tolls":
            at = int(arrived[key] - feeder.began)
            worst[at] = max(worst.get(at, 0.0), emitted - arrived[key])
    reports = rows["time"][rows["type"] == 0]
    return Outcome(
        len(traffic),
        float(np.count_nonzero(reports >= reports[-1] - 9)) / 10,
        found.right,
        str(found),
        sum(map(len, times.values())),
        share,
        {kind: round(float(np.quantile(some, 0.99)), 3) for kind, some in times.items()},
        {kind: round(max(some), 3) for kind, some in times.items()},
        min(late, default=None),
        sorted((float(at), round(took, 3)) for at, took in worst.items()),
        cpu_s,
        seconds,
    )


def _is_late(key: Any, emitted: float, arrived: Mapping[Any, float]) -> bool:
    return key in arrived and emitted - arrived[key] > example("validate").DEADLINES_S[key[0]]


def _arrivals(rows: Mapping[str, Any], file_of: Any, moments: list[float]) -> dict[Any, float]:
    """When each report and query came in, by the kind of answer and what is answered."""
    import numpy as np

    at = np.array(moments)[file_of].tolist()
    found: dict[Any, float] = {}
    columns = (rows[name].tolist() for name in ("type", "vid", "time", "qid"))
    kinds = {2: "balances", 3: "expenditures", 4: "travel_times"}
    for kind, vid, second, number, moment in zip(*columns, at, strict=True):
        if kind == 0:
            found["tolls", (vid, second)] = found["alerts", (vid, second)] = moment
        elif kind in kinds:  # nobody waits for an answer to a weather update
            found[kinds[kind], number] = moment
    return found
