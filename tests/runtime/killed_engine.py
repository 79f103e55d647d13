"""An engine to be killed: ``test_exactly_once`` runs this file as a process of its own.

It runs fixed dataflows over ``FOLDER/in``, changes others at random, and goes on until ``FOLDER/finish`` is there; then
it lets everything run dry and stops. It may be made to kill itself (:mod:`headgate.store.durable_steps`).
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.runtime.engine.engine import Engine
from headgate.runtime.spark_internals.session import open_session
from tests.runtime.place import MASTER, QUICK, SETTINGS
from tests.runtime.small import beside

COLUMNS = "id long, k string, v double, at timestamp, text string"


def base_flows(folder: Path) -> list[Dataflow]:
    """The dataflows that run from first to last: every kind of sink and of state."""
    source = f"""
- {{id: src, type: read_files, config: {{path: {folder}/in, columns: "{COLUMNS}"}}}}
- {{id: clean, type: filter, config: {{where: v > 0}}, inputs: [src]}}"""
    texts = [
        f"""
name: plain
tasks:{source}
- {{id: few, type: select, config: {{columns: [id, v]}}, inputs: [clean]}}
- {{id: parquet, type: write_files, config: {{path: {folder}/out/parquet, format: parquet}}, inputs: [clean]}}
- {{id: json, type: write_files, config: {{path: {folder}/out/json}}, inputs: [few]}}
- {{id: csv, type: write_files, config: {{path: {folder}/out/csv, format: csv}}, inputs: [few]}}
- {{id: late, type: write_files, config: {{path: {folder}/out/late}}, inputs: [few]}}
- {{id: table, type: write_table, config: {{url: "sqlite:///{folder}/out.db", table: plain}}, inputs: [few]}}
""",
        f"""
name: words
tasks:{source}
- {{id: words, type: tokenise, config: {{column: text}}, inputs: [clean]}}
- {{id: out, type: write_files, config: {{path: {folder}/out/words}}, inputs: [words]}}
""",
        f"""
name: keyed
tasks:{source}
- {{id: count, type: count, config: {{key: [k], into: n}}, inputs: [clean]}}
- {{id: kalman, type: kalman, config: {{key: [k], column: v, into: s}}, inputs: [clean]}}
- {{id: mean, type: moving_average, config: {{key: [k], column: v, size: 5, into: m}}, inputs: [clean]}}
- id: smooth
  inputs: [clean]
  alternates:
  - {{name: kalman, type: kalman, config: {{key: [k], column: v, sensor_noise: 1, into: s}}, value: 1}}
  - {{name: mean, type: moving_average, config: {{key: [k], column: v, size: 3, into: s}}, value: 0.8}}
- {{id: few, type: select, config: {{columns: [id, m]}}, inputs: [mean]}}
- {{id: counts, type: write_files, config: {{path: {folder}/out/counts}}, inputs: [count]}}
- {{id: kalmans, type: write_files, config: {{path: {folder}/out/kalmans, format: parquet}}, inputs: [kalman]}}
- {{id: means, type: write_table, config: {{url: "sqlite:///{folder}/out.db", table: means}}, inputs: [few]}}
- {{id: smoothed, type: write_files, config: {{path: {folder}/out/smoothed}}, inputs: [smooth]}}
""",
        f"""
name: chain
tasks:{source}
- {{id: count, type: count, config: {{key: [k], into: n}}, inputs: [clean]}}
- {{id: even, type: filter, config: {{where: n % 2 = 0}}, inputs: [count]}}
- {{id: residue, type: derive, config: {{columns: {{z: id % 70}}}}, inputs: [even]}}
- {{id: again, type: count, config: {{key: [z], into: c}}, inputs: [residue]}}
- {{id: first, type: dedup, config: {{key: [z]}}, inputs: [residue]}}
- {{id: out, type: write_files, config: {{path: {folder}/out/chain}}, inputs: [again]}}
- {{id: once, type: write_files, config: {{path: {folder}/out/once}}, inputs: [first]}}
""",
        f"""
name: windows
tasks:{source}
- id: window
  type: window
  config: {{time: at, size: 10s, key: [k], columns: {{n: count(*), s: sum(v)}}, late_by: 1h}}
  inputs: [clean]
- {{id: out, type: write_files, config: {{path: {folder}/out/windows}}, inputs: [window]}}
""",
    ]
    return [parse(text, "yaml").dataflow for text in texts]


def guest(folder: Path, name: str) -> Dataflow:
    """A dataflow that comes and goes, its second keyed host with it; those named g... have a source of their own."""
    path = "side" if name.startswith("g") else "in"
    text = f"""
name: {name}
tasks:
- {{id: src, type: read_files, config: {{path: {folder}/{path}, columns: "{COLUMNS}"{_slowly(path)}}}}}
- {{id: clean, type: filter, config: {{where: v > 0}}, inputs: [src]}}
- {{id: count, type: count, config: {{key: [k], into: {name}}}, inputs: [clean]}}
- {{id: rows, type: write_files, config: {{path: {folder}/out/{name}/rows}}, inputs: [clean]}}
- {{id: counts, type: write_files, config: {{path: {folder}/out/{name}/counts}}, inputs: [count]}}
- {{id: alone, type: count, config: {{key: [text], into: {name}}}, inputs: [clean]}}
- {{id: texts, type: write_files, config: {{path: {folder}/out/{name}/texts, format: csv}}, inputs: [texts_only]}}
- {{id: texts_only, type: select, config: {{columns: [id, text, {name}]}}, inputs: [alone]}}
"""
    return parse(text, "yaml").dataflow


def _slowly(path: str) -> str:
    return ", files_per_batch: 1" if path == "side" else ""


def change(engine: Engine, rnd: random.Random, folder: Path) -> None:
    """One hot change, chosen at random."""
    guests = [flow.name for flow in engine.snapshot.dataflows if flow.name[0] in "gh" and flow.name[1:].isdigit()]
    number = engine.snapshot.number + 1
    choice = rnd.randrange(6)
    if choice == 0 and not any(name.startswith("h") for name in guests):
        engine.submit(beside(guest(folder, f"h{number}"), "chain"))
    elif choice == 1 and not any(name.startswith("g") for name in guests):
        engine.submit(guest(folder, f"g{number}"))
    elif choice == 2 and guests:
        engine.withdraw(rnd.choice(guests))
    elif choice == 3:
        engine.switch("keyed", "smooth", rnd.choice(["kalman", "mean"]))
    elif choice == 4 and guests:
        name = next((name for name in guests if name.startswith("h")), None)
        if name is not None:
            (engine.resume if name in engine.snapshot.paused else engine.pause)(name)
    elif choice == 5:
        engine.repartition("words", "words", rnd.choice([None, 1, 2]))


# the run


def die_with(parent: int) -> None:
    """Outlive nobody: a test that is killed itself cannot end what it has started."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main(folder: Path, seed: int) -> int:
    threading.Thread(target=die_with, args=(os.getppid(),), daemon=True).start()
    rnd = random.Random(seed)
    # It does not live long enough for a compiler that takes its time.
    quick = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": QUICK}
    spark = open_session(MASTER, {**quick, **SETTINGS})
    with Engine(folder / "state", spark=spark, trigger_s=0.1) as engine:
        running = {flow.name for flow in engine.snapshot.dataflows}
        missing = [flow for flow in base_flows(folder) if flow.name not in running]
        if missing:
            engine.submit(*missing)
        print(f"ready at snapshot {engine.snapshot.number}", flush=True)
        (folder / "ready").write_text(str(os.getpid()), encoding="utf-8")
        while not (folder / "finish").exists():
            change(engine, rnd, folder)
            engine.housekeep()
            if _has_failed(engine):
                return 3
            time.sleep(rnd.uniform(0.05, 0.5))
        _run_dry(engine)
        last = folder / "last.json"
        if last.exists():
            last.rename(folder / "in" / last.name)
        _run_dry(engine)
        if _has_failed(engine):
            return 3
    spark.stop()
    return 0


def _has_failed(engine: Engine) -> bool:
    """Whether something failed for good; on a busy machine Spark's workers may be late, and are started again."""
    reasons = engine.failures()
    if reasons:
        print(f"failed: {reasons}", flush=True)
    return bool(reasons) and not engine.mendable()


def _run_dry(engine: Engine) -> None:
    while not _has_failed(engine):
        engine.wait_until_idle(despite_failures=True)
        engine.housekeep()
        drained = all(name in engine.plan.fragments for name in engine.fragments) and not engine.failures()
        if drained and not engine.outbox.refusals:
            return
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
