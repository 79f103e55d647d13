"""``headgate bench sharing``: how quick merging is, and SHARE's experiment for every strategy, beside its figures.

*Speed*: dataflows of seven tasks, of which about half run already, are submitted to a running set of 1,000 and to one
of 100,000 dataflows in turn, and withdrawn again; signing them is part of it. *Experiment*: the traces SEQ, RW1 and RW2
over generated collections like the paper's, and over the real DAGs where the folder of shared data is found. *On
Spark*: every strategy for real (:mod:`headgate_benchmarks.sharing_spark`).
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headgate.model.dataflow import Dataflow
from headgate.model.strategy import StrategyName
from headgate.report.text_table import text_table
from headgate.sharing.running import RunningSet
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry
from headgate_benchmarks import sharing_spark
from headgate_benchmarks.measured import Measured
from headgate_benchmarks.share.collections import Collection, opmw_like, real_collections, riotbench_like
from headgate_benchmarks.share.experiment import TRACES, Run, simulate
from headgate_benchmarks.workloads import chain, relational_chain

__all__ = ["PAPER", "merging", "run", "shared_data"]

SIZES = (1_000, 100_000)
ROUNDS = 7
BATCH = 500
SEMANTIC = 2_000

PAPER: Mapping[str, float] = {
    "opmw_seq_task_reduction": 0.34,
    "opmw_rw1_task_reduction": 0.37,
    "opmw_rw2_task_reduction": 0.37,
    "riotbench_seq_task_reduction": 0.38,
    "riotbench_rw1_task_reduction": 0.45,
    "riotbench_rw2_task_reduction": 0.44,
    "opmw_seq_replace-prune_cost_reduction": 0.39,
    "opmw_rw1_replace-prune_cost_reduction": 0.426,
    "opmw_rw2_replace-prune_cost_reduction": 0.417,
    "riotbench_seq_replace-prune_cost_reduction": 0.36,
    "riotbench_rw1_replace-prune_cost_reduction": 0.448,
    "riotbench_rw2_replace-prune_cost_reduction": 0.439,
    "opmw_seq_none_workers_max": 124,
    "opmw_seq_incremental_workers_max": 88,
    "opmw_seq_replace_workers_max": 61,
    "opmw_seq_replace-prune_workers_max": 61,
    "riotbench_seq_none_workers_max": 21,
    "riotbench_seq_incremental_workers_max": 21,
    "riotbench_seq_replace_workers_max": 12,
    "riotbench_seq_replace-prune_workers_max": 12,
    "opmw_rw1_none_workers": 82,
    "opmw_rw1_incremental_workers": 83,
    "opmw_rw1_replace_workers": 56,
    "opmw_rw1_replace-prune_workers": 47,
    "riotbench_rw1_none_workers": 19,
    "riotbench_rw1_incremental_workers": 21,
    "riotbench_rw1_replace_workers": 12,
    "riotbench_rw1_replace-prune_workers": 9,
    "opmw_rw1_none_operation_s": 26,
    "riotbench_rw1_none_operation_s": 26,
    "opmw_rw1_incremental_operation_s": 7.6,
    "riotbench_rw1_incremental_operation_s": 2.5,
    "opmw_rw1_replace-prune_operation_s": 50,
    "riotbench_rw1_replace-prune_operation_s": 50,
}
"""What SHARE's sections 7.2 to 7.4 report; its figures are for collections that ours are only like."""


def run(seed: int, progress: Callable[[str], None]) -> Measured:
    """All parts, one after the other."""
    one, other = merging(seed, progress), sharing_spark.run(seed, progress)
    return Measured(one.figures | other.figures, one.samples | other.samples, f"{one.table}\n{other.table}")


def merging(seed: int, progress: Callable[[str], None]) -> Measured:
    """Measure the speed, then simulate every collection, trace and strategy."""
    figures, samples = _speed(seed, progress)
    figures |= _semantic(seed, progress)
    rows: list[list[str]] = []
    for collection in [riotbench_like(seed), opmw_like(seed), *_real(progress)]:
        key = collection.name.removesuffix("-like") if collection.name.endswith("-like") else f"real_{collection.name}"
        samples[key] = {"facts": collection.facts(), "traces": {}}
        for name, make in TRACES.items():
            progress(f"{collection.name}, {name}")
            trace = make(collection, random.Random(f"{seed} {name}"))
            runs = {strategy: simulate(trace, strategy, random.Random(seed)) for strategy in StrategyName}
            found = _figures(runs)
            figures |= {f"{key}_{name.lower()}_{figure}": value for figure, value in found.items()}
            samples[key]["traces"][name] = {strategy.value: _series(one) for strategy, one in runs.items()}
            rows += _rows(collection, name, f"{key}_{name.lower()}", found)
    figures |= {f"paper_{name}": value for name, value in PAPER.items()}
    return Measured({name: round(value, 4) for name, value in figures.items()}, samples, _table(figures, rows))


def _speed(seed: int, progress: Callable[[str], None]) -> tuple[dict[str, float], dict[str, Any]]:
    draw = random.Random(seed)
    sets: dict[int, RunningSet] = {}
    for size in SIZES:
        progress(f"{size:,} dataflows are submitted")
        running = RunningSet()
        for number in range(size):
            running, _ = running.submit(chain(f"flow{number}", draw, sources=size // 20))
        sets[size] = running
    submits: dict[int, list[float]] = {size: [] for size in SIZES}
    withdrawals: dict[int, list[float]] = {size: [] for size in SIZES}
    gc.collect()
    for turn in range(ROUNDS):
        progress(f"round {turn + 1} of {ROUNDS}")
        for size in SIZES:
            flows = [chain(f"new{number}", draw, sources=size // 20) for number in range(BATCH)]
            sets[size] = _timed(sets[size], flows, submits[size], withdrawals[size])
    per_merge = {size: statistics.median(submits[size]) for size in SIZES}
    large, small = max(SIZES), min(SIZES)
    figures = {
        "merges_per_s": 1 / per_merge[large],
        "growth": per_merge[large] / per_merge[small],
        "withdrawals_per_s": 1 / statistics.median(withdrawals[large]),
        "merge_us_at_1000": per_merge[small] * 1e6,
        "merge_us_at_100000": per_merge[large] * 1e6,
    }
    return figures, {"merge_s": {str(size): submits[size] for size in SIZES}}


def _semantic(seed: int, progress: Callable[[str], None]) -> dict[str, float]:
    """The speed with normal forms, and how many tasks they save beyond equal signatures, for relational dataflows."""
    progress(f"{SEMANTIC:,} relational dataflows are submitted, with and without normal forms")
    tasks, took, wider = {}, {}, 0
    for semantic in (False, True):
        draw = random.Random(seed)
        shared = SharedSet(default_registry(), semantic)
        flows = [relational_chain(f"flow{number}", draw, sources=max(SEMANTIC // 40, 1)) for number in range(SEMANTIC)]
        started = time.process_time()
        for flow in flows:
            shared, submission = shared.submit(flow)
            wider += len(submission.wider)
        took[semantic], tasks[semantic] = time.process_time() - started, len(shared.running.tasks)
    return {
        "semantic_merges_per_s": SEMANTIC / took[True],
        "semantic_reuses": float(wider),
        "semantic_task_reduction": 1 - tasks[True] / tasks[False],
    }


def _timed(running: RunningSet, flows: list[Dataflow], submits: list[float], withdrawals: list[float]) -> RunningSet:
    started = time.process_time()
    for flow in flows:
        running, _ = running.submit(flow)
    between = time.process_time()
    for flow in flows:
        running, _ = running.withdraw(flow.name)
    submits.append((between - started) / len(flows))
    withdrawals.append((time.process_time() - between) / len(flows))
    return running


def _figures(runs: Mapping[StrategyName, Run]) -> dict[str, float]:
    alone = runs[StrategyName.NONE]
    pairs = zip(runs[StrategyName.HOT].walk, alone.walk, strict=True)
    figures = {
        "task_reduction": statistics.fmean(1 - a.active_tasks / b.active_tasks for a, b in pairs if b.active_tasks)
    }
    for strategy, one in runs.items():
        figures |= {
            f"{strategy.value}_workers": statistics.fmean(sample.workers for sample in one.walk),
            f"{strategy.value}_workers_max": float(max(sample.workers for sample in one.samples)),
            f"{strategy.value}_operation_s": one.mean_operation_s,
            f"{strategy.value}_cost": float(one.cost),
            f"{strategy.value}_cost_reduction": float(1 - one.cost / alone.cost),
        }
    return figures


def _series(run: Run) -> dict[str, Any]:
    return {
        "first": run.trace.first,
        "last": run.trace.last,
        "active_tasks": [sample.active_tasks for sample in run.samples],
        "workers": [sample.workers for sample in run.samples],
        "operation_s": [round(sample.operation_s, 3) for sample in run.samples],
        "cost": [round(float(sample.cost), 6) for sample in run.samples],
        "cost_per_task": [round(sample.cost_per_task, 8) for sample in run.samples],
    }


def _rows(collection: Collection, trace: str, key: str, found: Mapping[str, float]) -> list[list[str]]:
    rows = []
    for strategy in StrategyName:
        reduction = 0.0 if strategy is StrategyName.NONE else found["task_reduction"]
        cells = [
            (reduction, PAPER.get(f"{key}_task_reduction") if strategy is StrategyName.INCREMENTAL else None, ".0%"),
            *(
                (found[f"{strategy.value}_{name}"], PAPER.get(f"{key}_{strategy.value}_{name}"), form)
                for name, form in (("workers", ".0f"), ("workers_max", ".0f"), ("operation_s", ".1f"))
            ),
            (found[f"{strategy.value}_cost"], None, ".2f"),
            (found[f"{strategy.value}_cost_reduction"], PAPER.get(f"{key}_{strategy.value}_cost_reduction"), ".0%"),
        ]
        told = [f"{ours:{form}}" + (f" ({paper:{form}})" if paper is not None else "") for ours, paper, form in cells]
        rows.append([collection.name, trace, strategy.value, *told])
    return rows


def _table(figures: Mapping[str, float], rows: list[list[str]]) -> str:
    head = ["collection", "trace", "strategy", "fewer tasks", "workers", "at most", "operation s", "cost $", "cheaper"]
    speed = [
        f"{figures['merges_per_s']:,.0f} merges/s at 100,000 running dataflows, {figures['growth']:.2f} times as long "
        "for one as at 1,000",
        f"semantic sharing: {figures['semantic_merges_per_s']:,.0f} merges/s, {figures['semantic_reuses']:,.0f} wider "
        f"streams found, {figures['semantic_task_reduction']:.0%} fewer tasks than by equal signatures alone",
        "in brackets: the paper's figure, for its own collection",
    ]
    return "\n".join([text_table([head, *rows]), *speed]) + "\n"


def shared_data(start: Path | None = None) -> Path | None:
    """The folder of shared data: ``$HEADGATE_SHARED_DATA``, or ``shared/data`` beside this folder or one above it."""
    named = os.environ.get("HEADGATE_SHARED_DATA")
    places = [Path(named)] if named else [p / "shared" / "data" for p in (start or Path.cwd()).resolve().parents]
    return next((place for place in places if place.is_dir()), None)


def _real(progress: Callable[[str], None]) -> list[Collection]:
    folder = shared_data()
    if folder is None:
        progress("no folder of shared data: real DAGs are left out")
        return []
    return real_collections(folder)
