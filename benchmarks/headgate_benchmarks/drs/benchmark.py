"""``headgate bench drs``: processors on live Spark, as the models predict it and as it is measured.

Operators wait, by service times drawn from a distribution, so that 22 processors are real on two cores. In one run:

- the operators' service times are taken from their profiles, and each dataflow begins with a **calibration** run, from
  which is fitted what its micro-batches cost here and now;
- a **chain** and a **loop** of three operators get six allocations of 22 processors each: the recommended one,
  neighbours and bad ones, each in two turns, there and back, so that a machine that becomes slower does not favour the
  first. ``*_rank_correlation`` is Spearman's, of predicted with measured mean sojourns; ``spark_error_p50`` the median
  relative error of the micro-batch model over all allocations, ``mmk_error_p50`` that of M/M/k. ``*_noise`` is half of
  what two turns differ by, and ``*_recommended_is_best`` tells whether nothing was quicker by more than that;
- **steps** of the rate, 6, 12, 6 and 18 rows a second, under the DRS policy with a latency to keep: how many windows
  pass from a step until processors change, and what rows are kept waiting by a change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError
from headgate.runtime.observing.measuring import Measuring
from headgate_benchmarks.drs.flows import LOOP_SHARE, SERVICE, chain, loop, record
from headgate_benchmarks.measured import Measured
from headgate_benchmarks.on_spark import on_spark

if TYPE_CHECKING:
    from headgate.adaptation.cluster import Cluster
    from headgate.model.dataflow import Dataflow
    from headgate.model.names import Signature
    from headgate.queueing.network import Network
    from headgate.queueing.spark_flow import BatchCosts, SparkFlow
    from headgate_benchmarks.drs.live import Held

__all__ = ["PARTS", "candidates", "network_of", "run"]

Progress = Callable[[str], None]
Floats = Mapping[str, float]

THREADS, K_MAX = 64, 22
TRIGGER_S = 0.2
CHAIN_RATE, LOOP_RATE = 9.0, 6.0
PROFILING_RATE = 20.0
"""Dozens of rows a batch: a row takes as long whenever it is served, so that few would tell little."""

STEPS, STEP_S, WINDOW_S = (6.0, 12.0, 6.0, 18.0), 60.0, 15.0
"""A window has several batches, of seconds each, as DRS's minute has many tuples."""

SETTLE, BATCHES, MOST_S = 2, 5, 20.0
WORSE = (1.0, 1.2, 1.4, 1.7, 2.1, 2.6)
"""How much worse than the recommended allocation the six are to be, by the model: apart by more than two turns of one
allocation differ by."""

PROFILING = Measuring(sample_every=1, share=2.0)
NOT_PROFILING = Measuring(sample_every=None)
PROFILED_WITHIN_S, MEASUREMENTS = 90.0, 5
"""A measurement is of half a second of service, a dozen draws of the shortest one: the middle of five is believed."""

TRIED = ((9, 9, 4), (5, 6, 3), (6, 13, 3))
"""Allocations of the calibration runs."""

HOP_S = 0.02
"""Twice what the reader of a topic sleeps between looks."""


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


def candidates(flow: SparkFlow, processors: int, worse: Sequence[float] = WORSE) -> list[tuple[int, ...]]:
    """The recommended allocation, and others of as many processors that are so much worse by the model."""
    import numpy as np

    from headgate.queueing.spark_flow import assign_flow, predict_flow

    best = assign_flow(flow, processors)
    least = float(predict_flow(flow, best).mean_s[0])
    first, second = np.meshgrid(np.arange(1, processors), np.arange(1, processors))
    split = np.stack([first.ravel(), second.ravel(), processors - first.ravel() - second.ravel()], axis=1)
    found = predict_flow(flow, split[split[:, 2] >= 1])
    chosen = [best]
    for ratio in worse[1:]:
        away = np.abs(np.log(found.mean_s / least / ratio))
        for place in np.argsort(away):
            allocation = tuple(int(k) for k in found.allocations[place])
            # Neighbours in value should not be neighbours in kind: of two in a row another operator is starved.
            if allocation not in chosen and _starved(allocation, best) != _starved(chosen[-1], best):
                chosen.append(allocation)
                break
    return chosen


def _starved(allocation: tuple[int, ...], best: tuple[int, ...]) -> int:
    return min(range(len(best)), key=lambda place: allocation[place] / best[place])


def run(seed: int, progress: Progress) -> Measured:
    """Run all parts on one Spark."""
    return _run(("chain", "loop", "steps"), seed, progress)


PARTS = {name: (lambda seed, progress, name=name: _run((name,), seed, progress)) for name in ("chain", "loop", "steps")}
"""What of it can be run alone; each is calibrated first."""


def _run(parts: Sequence[str], seed: int, progress: Progress) -> Measured:
    began = time.monotonic()
    progress("starting Spark")
    with on_spark(f"local[{THREADS}]", "2g") as (spark, folder):
        service_s = _service(spark, folder, seed, progress)
        figures: dict[str, Any] = {f"service_{name}_s": mean for name, mean in service_s.items()}
        samples: dict[str, Any] = {"service_s": service_s}
        topologies = {"chain": (chain, CHAIN_RATE, 0.0), "loop": (loop, LOOP_RATE, LOOP_SHARE)}
        both: list[dict[str, Any]] = []
        costs: BatchCosts | None = None
        for name, (make, rate, back) in topologies.items():
            if name in parts:
                network = network_of(service_s, rate, back)
                samples[name], found = _compare(spark, folder / name, name, make, network, seed, progress)
                costs = costs or found
                figures |= _figures_of(name, samples[name])
                both += samples[name]["allocations"]
        if both:
            figures |= _errors(both)
        if "steps" in parts:
            samples["steps"] = _steps(spark, folder / "steps", service_s, costs, seed, progress)
            figures |= samples["steps"]["figures"]
    figures["seconds"] = time.monotonic() - began
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in figures.items()}
    return Measured(rounded, samples, _table(rounded, samples))


# calibration


def _service(spark: Any, folder: Path, seed: int, progress: Progress) -> dict[str, float]:
    """The operators' service times, from their profiles."""
    from headgate.runtime.engine.cluster import SparkCluster
    from headgate.runtime.engine.engine import Engine
    from headgate_benchmarks.drs.live import hold

    recording = folder / "profiling.json"
    record(recording, [(PROFILING_RATE, 300.0)], seed + 3)
    with Engine(folder / "profiling", spark=spark, trigger_s=TRIGGER_S, measuring=PROFILING) as engine:
        engine.submit(chain("profiling", recording))
        cluster, tasks = SparkCluster(engine), _operators(engine)
        progress("first batches, in which Spark's Python workers start")
        hold(cluster, tasks, TRIED[0], 1, 2, 60.0)
        progress("profiling the operators")
        until = time.monotonic() + PROFILED_WITHIN_S
        while min(_measurements(engine, tasks).values()) < MEASUREMENTS and time.monotonic() < until:
            time.sleep(1)
        found = _profiled(engine, tasks)
        if len(found) < len(tasks):
            missing = ", ".join(tasks.keys() - found.keys())
            raise HeadgateError("NOT_MEASURED", f"no profile of {missing} within {PROFILED_WITHIN_S:g} s")
    progress("profiled: " + ", ".join(f"{name} {mean:.3f} s" for name, mean in found.items()))
    return found


def _calibrate(cluster: Cluster, tasks: Mapping[str, Signature], flow: SparkFlow, progress: Progress) -> BatchCosts:
    """What batches of a flow cost here and now, from batches under allocations that are not compared later."""
    from headgate.queueing.fitting.batch_costs import fit_costs
    from headgate_benchmarks.drs.live import hold

    for allocation in TRIED:  # so that Spark has compiled, and workers have imported, what these batches need
        hold(cluster, tasks, allocation, SETTLE, 2, MOST_S)
    found = [hold(cluster, tasks, allocation, SETTLE, 4, MOST_S) for allocation in TRIED]
    costs = fit_costs(flow, [sample for held in found for sample in held.then.samples(held.allocation)], HOP_S)
    told = f"a batch {costs.fixed_s:.3f} s, a stage {costs.stage_s:.3f} s, a partition {costs.task_s:.4f} s"
    progress(f"calibrated: {told}")
    return costs


def _measurements(engine: Any, tasks: Mapping[str, Signature]) -> dict[str, int]:
    by_task = {task: len(samples) for (task, _), samples in engine.profiler.samples().items()}
    return {name: by_task.get(task, 0) for name, task in tasks.items()}


def _profiled(engine: Any, tasks: Mapping[str, Signature]) -> dict[str, float]:
    by_task = {task: profile for (task, _), profile in engine.profiler.profiles().items()}
    return {name: by_task[task].sojourn_s_per_row for name, task in tasks.items() if task in by_task}


def _operators(engine: Any) -> dict[str, Signature]:
    """The operators' signatures, in order, by name."""
    found = {task.name.rpartition(".")[2]: signature for signature, task in engine.plan.tasks.items()}
    return {each.task: found[each.task] for each in SERVICE}


# predicted and measured


def _compare(
    spark: Any,
    folder: Path,
    name: str,
    make: Callable[[str, Path], Dataflow],
    network: Network,
    seed: int,
    progress: Progress,
) -> tuple[dict[str, Any], BatchCosts]:
    from headgate.queueing.predict import predict
    from headgate.queueing.spark_flow import BatchCosts, SparkFlow, predict_flow
    from headgate.queueing.station import StationModel
    from headgate.runtime.engine.cluster import SparkCluster
    from headgate.runtime.engine.engine import Engine
    from headgate_benchmarks.drs.live import hold

    first, second, _ = SERVICE
    feedback = ((second.task, first.task),) if name == "loop" else ()
    folder.mkdir(parents=True)
    record(folder / "recording.json", [(network.external_rate_per_s, 900.0)], seed)
    with Engine(folder / "state", spark=spark, trigger_s=TRIGGER_S, measuring=NOT_PROFILING) as engine:
        engine.submit(make(name, folder / "recording.json"))
        cluster, tasks = SparkCluster(engine), _operators(engine)
        free = SparkFlow(network, BatchCosts(0.0), TRIGGER_S, feedback)
        costs = _calibrate(cluster, tasks, free, lambda told: progress(f"{name}: {told}"))
        flow = replace(free, costs=costs)
        turns: dict[tuple[int, ...], list[Held]] = {allocation: [] for allocation in candidates(flow, K_MAX)}
        for allocation in (*turns, *reversed(turns)):
            held = hold(cluster, tasks, allocation, SETTLE, BATCHES, MOST_S)
            turns[allocation].append(held)
            predicted = float(predict_flow(flow, allocation).mean_s[0])
            told = f"{held.then.mean_s:.2f} s in {held.then.batches} batches, predicted {predicted:.2f} s"
            progress(f"{name}: {_split(allocation)} took {told}")
    rows = [
        _row(helds, float(predict_flow(flow, k).mean_s[0]), predict(network, k, StationModel.MMK).mean_s)
        for k, helds in turns.items()
    ]
    told_costs = {"fixed_s": costs.fixed_s, "stage_s": costs.stage_s, "task_s": costs.task_s, "hop_s": costs.hop_s}
    return {"allocations": rows, "rate_per_s": network.external_rate_per_s, "costs": told_costs}, costs


def _row(helds: Sequence[Held], predicted: float, by_mmk: float) -> dict[str, Any]:
    rows = sum(held.then.rows_done for held in helds)
    batches = max(sum(held.then.batches for held in helds), 1)
    return {
        "allocation": _split(helds[0].allocation),
        "measured_s": sum(held.then.sojourn_s for held in helds) / max(rows, 1),
        "turns_s": [held.then.mean_s for held in helds],
        "predicted_s": predicted,
        "mmk_s": by_mmk,
        "batches": batches,
        "rows": rows,
        "interval_s": sum(held.then.seconds for held in helds) / batches,
        "in_jobs_s": sum(held.then.source.in_jobs_s for held in helds) / batches,
        "outside_jobs_s": sum(held.then.source.outside_jobs_s for held in helds) / batches,
        "apply_s": [held.apply_s for held in helds],
        "change_cost_s": [held.cost_s for held in helds],
    }


def _figures_of(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    from statistics import median

    from scipy.stats import spearmanr

    rows = found["allocations"]
    measured = [row["measured_s"] for row in rows]
    # Half of what two turns of one allocation differ by, relative to their mean; the middle one of all allocations.
    noise = median(abs(one - two) / (one + two) for one, two in (row["turns_s"] for row in rows))
    return {
        f"{name}_rank_correlation": float(spearmanr([row["predicted_s"] for row in rows], measured).statistic),
        f"{name}_mmk_rank_correlation": float(spearmanr([row["mmk_s"] for row in rows], measured).statistic),
        f"{name}_noise": noise,
        f"{name}_recommended": rows[0]["allocation"],
        f"{name}_recommended_s": measured[0],
        f"{name}_best_other_s": min(measured[1:]),
        f"{name}_recommended_is_best": measured[0] <= min(measured[1:]) * (1 + noise),
    }


def _errors(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    from statistics import median

    spark = [abs(row["predicted_s"] / row["measured_s"] - 1) for row in rows]
    mmk = [abs(row["mmk_s"] / row["measured_s"] - 1) for row in rows]
    return {
        "spark_error_p50": median(spark),
        "spark_error_max": max(spark),
        "mmk_error_p50": median(mmk),
        "change_apply_s": median(each for row in rows for each in row["apply_s"]),
        "change_cost_s": median(each for row in rows for each in row["change_cost_s"]),
    }


# steps of the rate, under the policy


def _steps(
    spark: Any, folder: Path, service_s: Floats, costs: BatchCosts | None, seed: int, progress: Progress
) -> dict[str, Any]:
    from headgate.adaptation.policies.drs import DrsSettings
    from headgate.adaptation.policies.drs_policy import DrsPolicy, Managed, act
    from headgate.queueing.fitting.smoothing import AlphaWeighted
    from headgate.queueing.spark_flow import BatchCosts, SparkFlow, assign_flow, min_flow, predict_flow
    from headgate.runtime.engine.cluster import SparkCluster
    from headgate.runtime.engine.engine import Engine
    from headgate_benchmarks.drs.live import hold

    folder.mkdir(parents=True)
    if costs is None:
        record(folder / "calibration.json", [(CHAIN_RATE, 900.0)], seed)
        with Engine(folder / "first", spark=spark, trigger_s=TRIGGER_S, measuring=NOT_PROFILING) as engine:
            engine.submit(chain("calibration", folder / "calibration.json"))
            free = SparkFlow(network_of(service_s, CHAIN_RATE), BatchCosts(0.0), TRIGGER_S)
            costs = _calibrate(SparkCluster(engine), _operators(engine), free, progress)
    known = costs

    def flow(rate: float) -> SparkFlow:
        return SparkFlow(network_of(service_s, rate), known, TRIGGER_S)

    # A latency that 18 processors keep at 12 rows a second: fewer do at 6, and at 18 all of them are wanted.
    at_twelve = flow(STEPS[1])
    target = round(1.1 * float(predict_flow(at_twelve, assign_flow(at_twelve, 18)).mean_s[0]), 2)
    settings = DrsSettings(
        processors_max=K_MAX,
        latency_max_s=target,
        latency_min_s=round(0.8 * target, 2),
        reallocation_interval_s=WINDOW_S / 2,
    )
    record(folder / "recording.json", [(rate, STEP_S) for rate in (STEPS[0], *STEPS)], seed + 7)
    dataflow = chain("steps", folder / "recording.json")
    scv = {each.task: each.scv for each in SERVICE}
    managed = Managed(dataflow, tuple(scv), known, TRIGGER_S, service_s, scv)
    policy = DrsPolicy(managed, settings, AlphaWeighted(0.2), learns=False)
    windows: list[dict[str, Any]] = []
    with Engine(folder / "state", spark=spark, trigger_s=TRIGGER_S, measuring=NOT_PROFILING) as engine:
        engine.submit(dataflow)
        began = time.monotonic()
        cluster, tasks = SparkCluster(engine), _operators(engine)
        # The first step is played twice: what the start leaves behind is gone when it counts.
        hold(cluster, tasks, min_flow(flow(STEPS[0]), target, most=K_MAX), 3, 99, STEP_S / 3)
        look = _Keeping(cluster)
        number = 0
        while (at := time.monotonic() - began) < STEP_S * (1 + len(STEPS)):
            time.sleep(max(0.0, STEP_S + number * WINDOW_S - at))
            number += 1
            answer = act(look, policy, time.monotonic())
            windows.append(_window(look, answer, time.monotonic() - began - STEP_S, policy))
            progress(f"steps: {windows[-1]['rate_per_s']:.0f} rows/s: {answer.reason}")
    return {"windows": windows, "latency_max_s": target, "figures": _reactions(windows, target)}


class _Keeping:
    """A cluster that keeps what it was last seen to do."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.seen: Any = None

    def observe(self) -> Any:
        self.seen = self._cluster.observe()
        return self.seen

    def apply(self, actions: Any) -> None:
        self._cluster.apply(actions)


def _window(look: _Keeping, answer: Any, at_s: float, policy: Any) -> dict[str, Any]:
    names = policy.managed.operators
    now = {task.name.rpartition(".")[2]: task.partitions for task in look.seen.tasks}
    sink = look.seen.sinks[0]
    fitted = answer.estimates
    return {
        "at_s": at_s,
        "rate_per_s": STEPS[min(max(int((at_s - WINDOW_S / 2) // STEP_S), 0), len(STEPS) - 1)],
        "fitted_rate_per_s": None if fitted is None else fitted.network.external_rate_per_s,
        "allocation": [now[name] for name in names],
        "decided": None if answer.decision is None else list(answer.decision.allocation),
        "changed": bool(answer.actions),
        "measured_s": None if sink.sojourn is None else sink.sojourn.mean_s,
        "rows": sink.rows,
        "because": answer.reason,
    }


def _reactions(windows: Sequence[Mapping[str, Any]], target: float) -> dict[str, Any]:
    """From each step, how many windows pass until processors change in its direction, and how latency fares."""
    reactions = []
    for number in range(1, len(STEPS)):
        up = STEPS[number] > STEPS[number - 1]
        # The window that ends with the step has seen nothing of it.
        first, last = number * STEP_S + WINDOW_S / 2, (number + 1) * STEP_S + WINDOW_S / 2
        after = [w for w in windows if first < w["at_s"] <= last]
        changed = [
            place
            for place, w in enumerate(after, start=1)
            if w["changed"] and (sum(w["decided"]) - sum(w["allocation"])) * (1 if up else -1) > 0
        ]
        reactions.append(changed[0] if changed else len(after) + 1)
    measured = [(w["rows"], w["measured_s"]) for w in windows if w["measured_s"] is not None]
    within = sum(rows for rows, sojourn in measured if sojourn <= target) / max(sum(rows for rows, _ in measured), 1)
    return {
        "steps_windows_to_change": max(reactions),
        "steps_windows_to_change_each": ":".join(map(str, reactions)),
        "steps_latency_max_s": target,
        "steps_share_within": within,
        "steps_changes": sum(w["changed"] for w in windows),
        "steps_processors": ":".join(str(sum(w["decided"] or w["allocation"])) for w in windows),
    }


def _split(allocation: Sequence[int]) -> str:
    return ":".join(map(str, allocation))


def _table(figures: Mapping[str, Any], samples: Mapping[str, Any]) -> str:
    lines = []
    for name in ("chain", "loop"):
        if name in samples:
            lines.append(f"{name}, {samples[name]['rate_per_s']:g} rows/s, {K_MAX} processors: mean sojourn in seconds")
            lines.append("  allocation   measured  micro-batch    M/M/k")
            lines += [
                f"  {r['allocation']:<11} {r['measured_s']:>9.2f} {r['predicted_s']:>12.2f} {r['mmk_s']:>8.2f}"
                for r in samples[name]["allocations"]
            ]
            lines.append("")
    lines += [
        f"{key:<28} {value:>14,.3f}" if isinstance(value, float) else f"{key:<28} {value!s:>14}"
        for key, value in figures.items()
    ]
    return "\n".join(lines) + "\n"
