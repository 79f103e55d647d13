"""An engine that runs the package of the guide *Your own task types*; ``test_foreign_package`` kills it once.

It runs the guide's dataflow with alternates of one task, and another dataflow that shares tasks with it, and switches
the alternate again and again, until ``FOLDER/finish`` is there. Then it reads everything, reports and stops.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.runtime.engine.engine import Engine
from headgate.runtime.spark_internals.session import open_session
from tests.runtime.place import MASTER, QUICK, SETTINGS

ALTERNATES = """
    alternates:
      - {name: package, type: heat_index, value: 1}
      - {name: sql, type: derive, config: {columns: {heat_index: celsius + (humidity - 40) / 10}}, value: 0.5}
"""


def dataflows(folder: Path) -> list[Dataflow]:
    """The guide's dataflow, with a built-in alternate of one of its tasks; and one that shares the tasks before it."""
    text = (folder / "weather.yaml").read_text(encoding="utf-8")
    ours = text.replace("\n    type: heat_index\n", ALTERNATES)
    assert ours != text
    other = ours.replace("name: weather", "name: other").replace("out/board", "out/other")
    plain = "\n  - {id: plain, type: write_files, config: {path: out/plain}, inputs: [scales]}\n"
    return [parse(ours, "yaml").dataflow, parse(other + plain, "yaml").dataflow]


def main(folder: Path) -> int:
    os.chdir(folder)
    quick = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": QUICK}
    spark = open_session(MASTER, {**quick, **SETTINGS})
    with Engine(folder / "state", spark=spark, trigger_s=0.1) as engine:
        observer = engine.observer()
        running = {flow.name for flow in engine.snapshot.dataflows}
        for flow in dataflows(folder):
            if flow.name not in running:
                engine.submit(flow)
        switches = 0
        while switches == 0 or not (folder / "finish").exists():
            switches += 1
            engine.switch("weather", "feels", ("sql", "package")[switches % 2])
            engine.housekeep()
            time.sleep(0.5)
        engine.wait_until_idle()
        report = {
            "failures": engine.failures(),
            "switches": switches,
            "tasks": len(engine.plan.tasks),
            "observed": {seen.type: [seen.rows_in, seen.rows_out, seen.errors] for seen in observer.observe().tasks},
        }
        (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
