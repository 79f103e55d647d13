"""``headgate bench scale``: the throughput of more machines, and how long they take to start.

On a local cluster of real Spark workers, all in one run:

- ``rows_per_s_N``: throughput of a task that waits 20 ms a row, on N cores;
- ``follows``: how many times more rows the most cores make than the fewest, over how many times more cores they are;
- ``startup_s``: from asking for a machine until it takes work, median and worst;
- ``executor_s``: from asking for a machine until Spark has an executor on it;
- ``leave_s``: from releasing a machine that has nothing to do until its executor is gone;
- ``slow_speed``: the speed probe on a machine of class ``slow``, asked for at 0.5, over that on the others.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.machines.local import LocalProvider
from headgate.machines.provider import machine_class
from headgate.model.dataflow import Dataflow
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.workloads import dataflow_of

if TYPE_CHECKING:
    from headgate.runtime.engine.engine import Engine

__all__ = ["SCALE"]

NODE = machine_class("node", 2, 2**30, Decimal("0.10"))
SLOW = machine_class("slow", 2, 2**30, Decimal("0.06"), core_power=0.5)
WAIT_S = 0.02
SETTINGS = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": "-XX:+UseSerialGC"}
PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class Sizes:
    machines: tuple[int, ...] = (1, 2, 4)
    rows: int = 1_600
    probes: int = 4


def _run(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Everything on one cluster; the seed plays no part."""
    del seed
    from headgate.runtime.engine.engine import Engine

    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    progress("starting a master and a machine")
    provider = LocalProvider.up(folder / "cluster", classes=[NODE, SLOW])
    try:
        provider.acquire(NODE.name)
        provider.wait_until_settled()
        progress("starting an engine")
        with Engine(
            folder / "state", master=provider.master, trigger_s=0.1, settings=SETTINGS, provider=provider
        ) as engine:
            return _measured(engine, provider, folder, progress, sizes)
    finally:
        provider.down()
        shutil.rmtree(folder, ignore_errors=True)


def _measured(engine: Engine, provider: LocalProvider, folder: Path, progress: Progress, sizes: Sizes) -> Measured:
    engine.submit(_dataflow(folder / "in"))
    rates: dict[int, float] = {}
    executor_s: list[float] = []
    for count in sizes.machines:
        while len(provider.list()) < count:
            progress(f"acquiring machine {len(provider.list()) + 1} of {sizes.machines[-1]}")
            executor_s.append(_acquired(engine, NODE.name))
        cores = count * NODE.cores
        progress(f"throughput on {cores} cores")
        rates[cores] = _rate(engine, folder / "in", cores, sizes.rows)
    progress("a slow machine")
    _acquired(engine, SLOW.name)
    slow_speed = _slow_speed(engine, folder, sizes.probes)
    machines = [machine.name for machine in provider.list()][1:]
    leave_s = [_released(engine, name) for name in machines]
    startup_s = [machine.startup_s for machine in provider.list(gone=True) if machine.startup_s is not None]
    fewest, most = min(rates), max(rates)
    figures = {f"rows_per_s_{cores}": rate for cores, rate in rates.items()}
    figures |= {
        "follows": rates[most] / rates[fewest] / (most / fewest),
        "startup_s": statistics.median(startup_s),
        "startup_worst_s": max(startup_s),
        "executor_s": statistics.median(executor_s),
        "leave_s": statistics.median(leave_s),
        "slow_speed": slow_speed,
    }
    return Measured(figures, {"startup_s": startup_s, "executor_s": executor_s, "leave_s": leave_s})


def _dataflow(source: Path) -> Dataflow:
    source.mkdir()
    tasks = [
        {"id": "read", "type": "read_files", "config": {"path": str(source), "columns": "n long"}},
        {
            "id": "wait",
            "type": "python",
            "config": {"function": "headgate_benchmarks.waiting.wait", "options": {"seconds": WAIT_S}},
            "inputs": ["read"],
        },
        {"id": "out", "type": "write_memory", "config": {"name": "out"}, "inputs": ["wait"]},
    ]
    return dataflow_of("waiting", tasks)


def _rate(engine: Engine, source: Path, cores: int, rows: int) -> float:
    """Rows per second of one micro-batch with a partition for each core, after a small one that warms all cores up."""
    engine.repartition("waiting", "wait", cores)
    _batch(engine, source, 4 * cores)
    return rows / _batch(engine, source, rows)


def _batch(engine: Engine, source: Path, rows: int) -> float:
    """Seconds of the micro-batch that treats so many rows."""
    before = len(engine.memory.rows("out"))
    hidden = source / ".next"
    hidden.write_text("".join(f'{{"n": {n}}}\n' for n in range(rows)), encoding="utf-8")
    hidden.rename(source / f"{time.time_ns()}.json")
    _wait(lambda: len(engine.memory.rows("out")) == before + rows)
    engine.wait_until_idle()  # its figures are there a moment after its rows
    return engine.status()[1][0].batch_s


def _acquired(engine: Engine, vm_class: str) -> float:
    """Seconds until an executor is on a machine that is asked for now."""
    before = len(engine.scaling.executors.list())
    began = time.monotonic()
    engine.acquire(vm_class)
    _wait(lambda: len(engine.scaling.executors.list()) > before)
    return time.monotonic() - began


def _released(engine: Engine, machine: str) -> float:
    before = len(engine.scaling.executors.list())
    began = time.monotonic()
    engine.release(machine)
    _wait(lambda: len(engine.scaling.executors.list()) < before)
    return time.monotonic() - began


def _slow_speed(engine: Engine, folder: Path, probes: int) -> float:
    """The speed of the slow machine over that of the others, each the median of its last probes."""
    from headgate.runtime.observing.workers import Workers

    workers = Workers(engine.spark, folder / "reference.json", engine.scaling.machines)
    for _ in range(probes):
        workers.probe()
    seen = workers.observe(1.0)
    speeds = {worker.vm_class: [w.speed for w in seen if w.vm_class == worker.vm_class and w.speed] for worker in seen}
    return statistics.median(speeds[SLOW.name]) / statistics.median(speeds[NODE.name])


def _wait(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not reached():
        if time.monotonic() > until:
            raise TimeoutError(f"nothing happened within {PATIENCE_S:g} s")
        time.sleep(0.02)


SCALE = Benchmark(
    "scale",
    "The throughput of more machines, and how long they take to start.",
    {"scale": _run},
    Sizes(),
    Sizes((1, 2), 60, 1),
    "rows_per_s_* follows startup_s startup_worst_s executor_s leave_s slow_speed",
    own_cluster=True,
)
