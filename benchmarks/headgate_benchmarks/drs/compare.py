"""Parts ``chain`` and ``loop`` of ``headgate bench drs``: predicted and measured sojourns under six allocations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.drs.calibration import NOT_PROFILING, TRIGGER_S, Sizes, calibrate, operators_of
from headgate_benchmarks.drs.flows import SERVICE, record
from headgate_benchmarks.drs.live import hold
from headgate_benchmarks.study import Progress

if TYPE_CHECKING:
    from headgate.model.dataflow import Dataflow
    from headgate.queueing.network import Network
    from headgate.queueing.spark_flow import BatchCosts, SparkFlow
    from headgate_benchmarks.drs.live import Held

__all__ = ["candidates", "compare", "errors_of", "figures_of"]


def candidates(flow: SparkFlow, processors: int, worse: Sequence[float]) -> list[tuple[int, ...]]:
    """The recommended allocation, and others of as many processors that are so much worse by the model."""
    import numpy as np

    from headgate.queueing.batch_sizing import assign_flow
    from headgate.queueing.spark_flow import predict_flow

    best = assign_flow(flow, processors)
    least = float(predict_flow(flow, best).mean_s[0])
    first, second = np.meshgrid(np.arange(1, processors), np.arange(1, processors))
    split = np.stack([first.ravel(), second.ravel(), processors - first.ravel() - second.ravel()], axis=1)
    predicted = predict_flow(flow, split[split[:, 2] >= 1])
    chosen = [best]
    for ratio in worse[1:]:
        away = np.abs(np.log(predicted.mean_s / least / ratio))
        for place in np.argsort(away):
            allocation = tuple(int(k) for k in predicted.allocations[place])
            # Neighbours in value should not be neighbours in kind: of two in a row another operator is starved.
            if allocation not in chosen and _starved(allocation, best) != _starved(chosen[-1], best):
                chosen.append(allocation)
                break
    return chosen


def _starved(allocation: tuple[int, ...], best: tuple[int, ...]) -> int:
    return min(range(len(best)), key=lambda place: allocation[place] / best[place])


def compare(
    spark: Any,
    folder: Path,
    name: str,
    make: Callable[[str, Path], Dataflow],
    network: Network,
    seed: int,
    progress: Progress,
    sizes: Sizes,
) -> tuple[dict[str, Any], BatchCosts]:
    from headgate.queueing.predict import predict
    from headgate.queueing.spark_flow import BatchCosts, SparkFlow, predict_flow
    from headgate.queueing.station import StationModel
    from headgate.runtime.engine.cluster import SparkCluster
    from headgate.runtime.engine.engine import Engine

    first, second, _ = SERVICE
    feedback = ((second.task, first.task),) if name == "loop" else ()
    folder.mkdir(parents=True)
    record(folder / "recording.json", [(network.external_rate_per_s, 900.0)], seed)
    with Engine(folder / "state", spark=spark, trigger_s=TRIGGER_S, measuring=NOT_PROFILING) as engine:
        engine.submit(make(name, folder / "recording.json"))
        cluster, tasks = SparkCluster(engine), operators_of(engine)
        free = SparkFlow(network, BatchCosts(0.0), TRIGGER_S, feedback)
        costs = calibrate(cluster, tasks, free, lambda step: progress(f"{name}: {step}"), sizes)
        flow = replace(free, costs=costs)
        chosen = candidates(flow, sizes.processors, sizes.worse)
        turns: dict[tuple[int, ...], list[Held]] = {allocation: [] for allocation in chosen}
        for allocation in (*turns, *reversed(turns)):
            held = hold(cluster, tasks, allocation, sizes.settle, sizes.batches, sizes.most_s)
            turns[allocation].append(held)
            predicted = float(predict_flow(flow, allocation).mean_s[0])
            seen = f"{held.then.mean_s:.2f} s in {held.then.batches} batches, predicted {predicted:.2f} s"
            progress(f"{name}: {split(allocation)} took {seen}")
    rows = [
        _row(helds, float(predict_flow(flow, k).mean_s[0]), predict(network, k, StationModel.MMK).mean_s)
        for k, helds in turns.items()
    ]
    return {"allocations": rows, "rate_per_s": network.external_rate_per_s, "costs": asdict(costs)}, costs


def _row(helds: Sequence[Held], predicted: float, by_mmk: float) -> dict[str, Any]:
    rows = sum(held.then.rows_done for held in helds)
    batches = max(sum(held.then.batches for held in helds), 1)
    return {
        "allocation": split(helds[0].allocation),
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


def figures_of(name: str, sample: Mapping[str, Any]) -> dict[str, Any]:
    from scipy.stats import spearmanr

    rows = sample["allocations"]
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


def errors_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    spark = [abs(row["predicted_s"] / row["measured_s"] - 1) for row in rows]
    mmk = [abs(row["mmk_s"] / row["measured_s"] - 1) for row in rows]
    return {
        "spark_error_p50": median(spark),
        "spark_error_max": max(spark),
        "mmk_error_p50": median(mmk),
        "change_apply_s": median(each for row in rows for each in row["apply_s"]),
        "change_cost_s": median(each for row in rows for each in row["change_cost_s"]),
    }


def split(allocation: Sequence[int]) -> str:
    """An allocation as DRS writes it."""
    return ":".join(map(str, allocation))
