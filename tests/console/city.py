"""A city with several teams on a live engine, with the console in front: for browser tests, pictures and development.

    .venv/bin/python -m tests.console.city FOLDER PORT

runs it until it is stopped.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.access.principal import AccessRole, Principal
from headgate.adaptation.controller.guards import GuardRails
from headgate.api.application import Door, application
from headgate.api.network import listening
from headgate.api.server import serving
from headgate.model.names import Signature, TaskId
from headgate.service.control import ControlOptions, control_loop
from headgate.service.load import load
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.runtime.engine.engine import Engine

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FILES = ("alarms.yaml", "map.yaml", "archive.json", "quality.py")
RATE = 400

COMFORT = """\
# How the air feels, for people who go out. Days with next to no dust break the formula.
name: comfort
owner: tourism
service_level: {latency_max_s: 30}
tasks:
  - id: lines
    type: read_files
    config: {path: data/city/*.jsonl, format: text}
  - id: parsed
    type: parse_json
    config: {columns: "sensor string, district string, t timestamp, temperature double, humidity double, dust double"}
    inputs: [lines]
  - id: valid
    type: range_filter
    config: {ranges: {temperature: [-30, 50], humidity: [0, 100], dust: [0, 1000]}}
    inputs: [parsed]
  - id: index
    type: derive
    config: {columns: {comfort: "temperature - 100 div cast(dust as int)"}}
    on_error: dead_letter
    inputs: [valid]
  - id: board
    type: write_files
    config: {path: out/comfort}
    inputs: [index]
"""
"""A row with less than one unit of dust divides by zero."""

FROST = """\
name: frost
owner: roads
description: Where to spread salt tonight
service_level:
  latency_max_s: 10
tasks:
  - id: read
    type: read_files
    config: {path: data/city/*.jsonl, format: text}
  - id: fields
    type: parse_json
    config:
      columns: sensor string, district string, t timestamp, temperature double, humidity double, dust double
    inputs: [read]
  - id: plausible
    type: range_filter
    config:
      ranges: {temperature: [-30, 50], humidity: [0, 100], dust: [0, 1000]}
    inputs: [fields]
  - id: cold
    type: filter
    config: {where: temperature < 24}
    inputs: [plausible]
  - id: crews
    type: write_files
    config: {path: out/frost}
    inputs: [cold]
"""
"""A dataflow that a person submits on the page."""

MENDED = COMFORT.replace("div cast(dust as int)", "div greatest(cast(dust as int), 1)")
"""What a person makes of it who has read why rows failed."""


class City:
    """An engine on the city's dataflows, sensors that bring readings, and its API with the page on a port."""

    def __init__(self, folder: Path, spark: SparkSession | None) -> None:
        self.folder, self.spark = folder, spark
        self.rate = RATE
        self.engine: Engine
        self.url = self.token = ""
        self.door = Door()
        """With the key of sessions, which outlives engines."""

        self._ended = threading.Event()

    @contextlib.contextmanager
    def running(self, port: int = 0) -> Iterator[City]:
        """Run until the block ends; paths in the dataflows are relative to the folder."""
        from headgate.runtime.engine.engine import Engine

        sys.path.insert(0, str(EXAMPLES))
        from city_data import write  # type: ignore[import-not-found]

        write(self.folder / "data", rows=1_000, seed=2)
        (self.folder / "out").mkdir(exist_ok=True)
        with contextlib.chdir(self.folder), Engine("state", spark=self.spark, trigger_s=0.5) as self.engine:
            rails = GuardRails(cooldown_s=5.0, shrink_after_s=10.0)
            options = ControlOptions(rails=rails, every_s=5.0, window_s=15.0)
            loop = control_loop(self.engine, options, 0.5, Decimal("0.10"))
            self.served = served = ServedEngine(self.engine, default_registry(), control=loop)
            self._submit(served)
            threads = [threading.Thread(target=work, daemon=True) for work in (self._bring, self._keep)]
            for thread in threads:
                thread.start()
            try:
                with loop, closing(served), ExitStack() as self._door:
                    self._door.enter_context(self._serving(served, port))
                    yield self
            finally:
                self._ended.set()
                for thread in threads:
                    thread.join()

    def restarts(self) -> None:
        """The service ends and comes back at the same address, as when a supervisor starts an engine anew."""
        port = int(self.url.rpartition(":")[2])
        self._door.close()
        self._door.enter_context(self._serving(self.served, port))

    def signature(self, dataflow: str, task: str) -> Signature:
        """The running task of a dataflow's task."""
        return self.engine.shared.running.find(dataflow).signatures[TaskId(task)]

    def _submit(self, served: ServedEngine) -> None:
        (self.folder / "comfort.yaml").write_text(COMFORT, encoding="utf-8")
        mine = served.acting_for(Principal("ana", AccessRole.ADMIN, origin="test"))
        for path in (*(EXAMPLES / "city" / name for name in FILES), self.folder / "comfort.yaml"):
            mine.submit(load(path, default_registry()).signed)

    def _bring(self) -> None:
        from city_data import readings, write_file

        rows, number = readings(10_000_000, seed=1), 1
        while not self._ended.wait(0.5):
            write_file(Path("data/city"), number, islice(rows, self.rate // 2))
            number += 1

    def _keep(self) -> None:
        while not self._ended.wait(0.5):
            self.engine.housekeep()

    @contextlib.contextmanager
    def _serving(self, served: ServedEngine, port: int) -> Iterator[None]:
        state = self.engine.state.path
        with (
            listening(f"127.0.0.1:{port}") as network,
            serving(state, application(served, self.door), network=(network,)),
        ):
            ana = Principal("ana", AccessRole.ADMIN, origin="test")
            self.url = network.url
            if not self.token:
                self.token = str(served.tokens.create(ana, "ana", AccessRole.ADMIN, (), 3600.0)["token"])
            yield


if __name__ == "__main__":
    place = Path(sys.argv[1]).absolute()
    place.mkdir(parents=True, exist_ok=True)
    with City(place, None).running(int(sys.argv[2])) as city:
        print(city.url, city.token, flush=True)
        while True:
            time.sleep(60)
