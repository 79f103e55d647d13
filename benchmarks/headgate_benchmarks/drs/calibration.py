"""Calibration of ``headgate bench drs``: service times from profiles, and the costs of micro-batches here and now."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError
from headgate.runtime.observing.measuring import Measuring
from headgate_benchmarks.drs.flows import SERVICE, chain, record
from headgate_benchmarks.drs.live import hold
from headgate_benchmarks.study import Progress

if TYPE_CHECKING:
    from headgate.adaptation.cluster import Cluster
    from headgate.model.names import Signature
    from headgate.queueing.network import Network
    from headgate.queueing.spark_flow import BatchCosts, SparkFlow

__all__ = ["NOT_PROFILING", "TRIGGER_S", "Floats", "Sizes", "calibrate", "network_of", "operators_of", "service_times"]

Floats = Mapping[str, float]

TRIGGER_S = 0.2
PROFILING = Measuring(sample_every=1, share=2.0)
NOT_PROFILING = Measuring(sample_every=None)
PROFILED_WITHIN_S = 90.0
HOP_S = 0.02
"""Twice what the reader of a topic sleeps between looks."""


@dataclass(frozen=True, slots=True)
class Sizes:
    threads: int = 64
    processors: int = 22
    chain_rate: float = 9.0
    loop_rate: float = 6.0
    profiling_rate: float = 20.0
    """Dozens of rows a batch: a row takes as long whenever it is served, so that few would show little."""

    measurements: int = 5
    """A measurement is of half a second of service, a dozen draws of the shortest one: the middle of five counts."""

    tried: tuple[tuple[int, ...], ...] = ((9, 9, 4), (5, 6, 3), (6, 13, 3))
    """Allocations of the calibration runs."""

    settle: int = 2
    batches: int = 5
    most_s: float = 20.0
    worse: tuple[float, ...] = (1.0, 1.2, 1.4, 1.7, 2.1, 2.6)
    """How much worse than the recommended allocation those that are compared are, by the model: apart by more than two
    turns of one allocation differ by."""

    rates: tuple[float, ...] = (6.0, 12.0, 6.0, 18.0)
    step_s: float = 60.0
    window_s: float = 15.0
    """A window has several batches, of seconds each, as DRS's minute has many tuples."""


def network_of(service_s: Floats, rate_per_s: float, back: float = 0.0) -> Network:
    """The three operators as a network; ``back`` is the share of the second's rows that go back to the first."""
    from headgate.queueing.network import Network, Operator, Route

    first, second, third = SERVICE
    operators = tuple(
        Operator(each.task, 1 / service_s[each.task], each.scv, rate_per_s if each is first else 0.0)
        for each in SERVICE
    )
    routes = [Route(first.task, second.task), Route(second.task, third.task, 1 - back)]
    if back > 0:
        routes.append(Route(second.task, first.task, back))
    return Network(operators, tuple(routes))


def service_times(spark: Any, folder: Path, seed: int, progress: Progress, sizes: Sizes) -> dict[str, float]:
    """The operators' service times, from their profiles."""
    from headgate.runtime.engine.cluster import SparkCluster
    from headgate.runtime.engine.engine import Engine

    recording = folder / "profiling.json"
    record(recording, [(sizes.profiling_rate, 300.0)], seed + 3)
    with Engine(folder / "profiling", spark=spark, trigger_s=TRIGGER_S, measuring=PROFILING) as engine:
        engine.submit(chain("profiling", recording))
        cluster, tasks = SparkCluster(engine), operators_of(engine)
        progress("first batches, in which Spark's Python workers start")
        hold(cluster, tasks, sizes.tried[0], 1, 2, 3 * sizes.most_s)
        progress("profiling the operators")
        until = time.monotonic() + PROFILED_WITHIN_S
        while min(_measurements(engine, tasks).values()) < sizes.measurements and time.monotonic() < until:
            time.sleep(0.5)
        profiled = _profiled(engine, tasks)
        if len(profiled) < len(tasks):
            missing = ", ".join(tasks.keys() - profiled.keys())
            raise HeadgateError("NOT_MEASURED", f"no profile of {missing} within {PROFILED_WITHIN_S:g} s")
    progress("profiled: " + ", ".join(f"{name} {mean:.3f} s" for name, mean in profiled.items()))
    return profiled


def calibrate(
    cluster: Cluster, tasks: Mapping[str, Signature], flow: SparkFlow, progress: Progress, sizes: Sizes
) -> BatchCosts:
    """The costs of a flow's batches here and now, from batches under allocations that are not compared later."""
    from headgate.queueing.fitting.batch_costs import fit_costs

    for allocation in sizes.tried:  # Spark compiles, and workers import
        hold(cluster, tasks, allocation, sizes.settle, 2, sizes.most_s)
    holds = [hold(cluster, tasks, allocation, sizes.settle, 4, sizes.most_s) for allocation in sizes.tried]
    costs = fit_costs(flow, [sample for held in holds for sample in held.then.samples(held.allocation)], HOP_S)
    parts = f"a batch {costs.fixed_s:.3f} s, a stage {costs.stage_s:.3f} s, a partition {costs.task_s:.4f} s"
    progress(f"calibrated: {parts}")
    return costs


def _measurements(engine: Any, tasks: Mapping[str, Signature]) -> dict[str, int]:
    by_task = {task: len(samples) for (task, _), samples in engine.profiler.samples().items()}
    return {name: by_task.get(task, 0) for name, task in tasks.items()}


def _profiled(engine: Any, tasks: Mapping[str, Signature]) -> dict[str, float]:
    by_task = {task: profile for (task, _), profile in engine.profiler.profiles().items()}
    return {name: by_task[task].sojourn_s_per_row for name, task in tasks.items() if task in by_task}


def operators_of(engine: Any) -> dict[str, Signature]:
    """The operators' signatures, in order, by name."""
    signatures = {task.name.rpartition(".")[2]: signature for signature, task in engine.plan.tasks.items()}
    return {each.task: signatures[each.task] for each in SERVICE}
