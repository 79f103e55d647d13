"""``headgate bench sharing``: the speed of merging, and SHARE's experiment for every strategy, beside its figures.

*Merging*: dataflows of seven tasks, of which about half run already, are submitted to a running set of 1,000 and to one
of 100,000 dataflows in turn, and withdrawn again; signing them is part of it. *Experiment*: the traces SEQ, RW1 and RW2
over generated collections like the paper's, and over the real DAGs where the folder of shared data is. *Spark*: every
strategy for real (:mod:`headgate_benchmarks.sharing_spark`). *Submit*: a whole submission without Spark, and a restart
(:mod:`headgate_benchmarks.sharing_submit`).
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.model.dataflow import Dataflow
from headgate.model.strategy import StrategyName
from headgate.model.table import Table
from headgate.sharing.running import RunningSet
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.checkout import shared_data
from headgate_benchmarks.share.collections import Collection, opmw_like, real_collections, riotbench_like
from headgate_benchmarks.share.experiment import TRACES, Run, simulate
from headgate_benchmarks.sharing_plots import plot
from headgate_benchmarks.sharing_spark import SparkSizes, run_strategies
from headgate_benchmarks.sharing_submit import SubmitSizes, run_submissions
from headgate_benchmarks.study import Conclusion, Measured, Progress, Row, Study, columns
from headgate_benchmarks.workloads import chain, relational_chain

__all__ = ["PAPER", "SHARING", "Sizes"]


@dataclass(frozen=True, slots=True)
class Sizes:
    running: tuple[int, int] = (1_000, 100_000)
    rounds: int = 7
    batch: int = 500
    semantic: int = 2_000
    collections: tuple[Callable[[int], Collection], ...] = (riotbench_like, opmw_like)
    real: bool = True
    spark: SparkSizes = field(default_factory=SparkSizes)
    submit: SubmitSizes = field(default_factory=SubmitSizes)


def _by_strategy(key: str, measure: str, **figures: float) -> dict[str, float]:
    return {f"{key}_{name.replace('_', '-')}_{measure}": figure for name, figure in figures.items()}


PAPER: Mapping[str, float] = {
    "opmw_seq_task_reduction": 0.34,
    "opmw_rw1_task_reduction": 0.37,
    "opmw_rw2_task_reduction": 0.37,
    "riotbench_seq_task_reduction": 0.38,
    "riotbench_rw1_task_reduction": 0.45,
    "riotbench_rw2_task_reduction": 0.44,
    **_by_strategy("opmw_seq", "cost_reduction", replace_prune=0.39),
    **_by_strategy("opmw_rw1", "cost_reduction", replace_prune=0.426),
    **_by_strategy("opmw_rw2", "cost_reduction", replace_prune=0.417),
    **_by_strategy("riotbench_seq", "cost_reduction", replace_prune=0.36),
    **_by_strategy("riotbench_rw1", "cost_reduction", replace_prune=0.448),
    **_by_strategy("riotbench_rw2", "cost_reduction", replace_prune=0.439),
    **_by_strategy("opmw_seq", "workers_max", none=124, incremental=88, replace=61, replace_prune=61),
    **_by_strategy("riotbench_seq", "workers_max", none=21, incremental=21, replace=12, replace_prune=12),
    **_by_strategy("opmw_rw1", "workers", none=82, incremental=83, replace=56, replace_prune=47),
    **_by_strategy("riotbench_rw1", "workers", none=19, incremental=21, replace=12, replace_prune=9),
    **_by_strategy("opmw_rw1", "operation_s", none=26, incremental=7.6, replace_prune=50),
    **_by_strategy("riotbench_rw1", "operation_s", none=26, incremental=2.5, replace_prune=50),
}
"""Figures of SHARE's sections 7.2 to 7.4, for collections that ours resemble."""


def _merging(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """The speed, then every collection, trace and strategy."""
    return (
        _speed(seed, progress, sizes)
        | Measured(_semantic(seed, progress, sizes))
        | _experiment(seed, progress, sizes)
        | Measured({f"paper_{name}": value for name, value in PAPER.items()})
    )


def _speed(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    draw = random.Random(seed)
    sets: dict[int, RunningSet] = {}
    for size in sizes.running:
        progress(f"{size:,} dataflows are submitted")
        running = RunningSet()
        for number in range(size):
            running, _ = running.submit(chain(f"flow{number}", draw, sources=max(size // 20, 1)))
        sets[size] = running
    submits: dict[int, list[float]] = {size: [] for size in sizes.running}
    withdrawals: dict[int, list[float]] = {size: [] for size in sizes.running}
    gc.collect()
    for turn in range(sizes.rounds):
        progress(f"round {turn + 1} of {sizes.rounds}")
        for size in sizes.running:
            flows = [chain(f"new{number}", draw, sources=max(size // 20, 1)) for number in range(sizes.batch)]
            sets[size] = _timed(sets[size], flows, submits[size], withdrawals[size])
    small, large = sizes.running
    per_merge = {size: statistics.median(submits[size]) for size in sizes.running}
    figures = {
        "merges_per_s": 1 / per_merge[large],
        "growth": per_merge[large] / per_merge[small],
        "withdrawals_per_s": 1 / statistics.median(withdrawals[large]),
        "merge_us_at_1000": per_merge[small] * 1e6,
        "merge_us_at_100000": per_merge[large] * 1e6,
    }
    return Measured(figures, {"merge_s": {str(size): submits[size] for size in sizes.running}})


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


def _semantic(seed: int, progress: Progress, sizes: Sizes) -> dict[str, float]:
    """The speed with normal forms, and how many tasks they save beyond equal signatures, for relational dataflows."""
    count = sizes.semantic
    progress(f"{count:,} relational dataflows are submitted, with and without normal forms")
    tasks, took, wider = {}, {}, 0
    for semantic in (False, True):
        draw = random.Random(seed)
        shared = SharedSet(default_registry(), semantic)
        flows = [relational_chain(f"flow{number}", draw, sources=max(count // 40, 1)) for number in range(count)]
        started = time.process_time()
        for flow in flows:
            shared, submission = shared.submit(flow)
            wider += len(submission.wider)
        took[semantic], tasks[semantic] = time.process_time() - started, len(shared.running.tasks)
    return {
        "semantic_merges_per_s": count / took[True],
        "semantic_reuses": float(wider),
        "semantic_task_reduction": 1 - tasks[True] / tasks[False],
    }


def _experiment(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    worlds = [*(make(seed) for make in sizes.collections), *(_real(progress) if sizes.real else ())]

    def trials(collection: Collection) -> Iterator[Row]:
        generated = collection.name.endswith("-like")
        key = collection.name.removesuffix("-like") if generated else f"real_{collection.name}"
        for name, make in TRACES.items():
            progress(f"{collection.name}, {name}")
            trace = make(collection, random.Random(f"{seed} {name}"))
            runs = {strategy: simulate(trace, strategy, random.Random(seed)) for strategy in StrategyName}
            for strategy, run in runs.items():
                figures = _figures(run, runs[StrategyName.NONE])
                yield {"collection": key, "trace": name, "strategy": strategy.value, **figures, "series": _series(run)}

    return Study("experiment", trials, _conclude).run(worlds, progress)


def _figures(run: Run, separate: Run) -> dict[str, float]:
    pairs = zip(run.walk, separate.walk, strict=True)
    return {
        "task_reduction": statistics.fmean(1 - a.active_tasks / b.active_tasks for a, b in pairs if b.active_tasks),
        "workers": statistics.fmean(sample.workers for sample in run.walk),
        "workers_max": float(max(sample.workers for sample in run.samples)),
        "operation_s": run.mean_operation_s,
        "cost": float(run.cost),
        "cost_reduction": float(1 - run.cost / separate.cost),
    }


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


FORMS = {
    "task_reduction": ("fewer tasks", ".0%"),
    "workers": ("workers", ".0f"),
    "workers_max": ("at most", ".0f"),
    "operation_s": ("operation s", ".1f"),
    "cost": ("cost $", ".2f"),
    "cost_reduction": ("cheaper", ".0%"),
}


def _conclude(rows: Sequence[Row]) -> Conclusion:
    figures: dict[str, Any] = {}
    shown: list[Row] = []
    for row in rows:
        key, strategy = f"{row['collection']}_{row['trace'].lower()}", row["strategy"]
        cells = {}
        for measure, (_, form) in FORMS.items():
            name = f"{key}_{strategy}_{measure}"
            if measure != "task_reduction":
                figures[name] = row[measure]
            elif strategy == StrategyName.HOT.value:
                figures[f"{key}_{measure}"] = row[measure]
            theirs = PAPER.get(
                f"{key}_{measure}" if strategy == StrategyName.INCREMENTAL.value else name, PAPER.get(name)
            )
            cells[measure] = f"{row[measure]:{form}}" + ("" if theirs is None else f" ({theirs:{form}})")
        shown.append({name: row[name] for name in ("collection", "trace", "strategy")} | cells)
    heads = [("collection", "collection"), ("trace", "trace"), ("strategy", "strategy")]
    heads += [(measure, title) for measure, (title, _) in FORMS.items()]
    note = "In brackets: the paper's figure, for its own collection."
    return Conclusion(figures, (Table("SHARE's experiment, simulated", columns(*heads), tuple(shown), (note,)),))


def _real(progress: Progress) -> list[Collection]:
    folder = shared_data()
    if folder is None:
        progress("no folder of shared data: real DAGs are left out")
        return []
    return real_collections(folder)


def _spark(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return run_strategies(seed, progress, sizes.spark)


def _submit(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return run_submissions(seed, progress, sizes.submit)


SHARING = Benchmark(
    "sharing",
    "The speed of merging, and what each strategy saves.",
    {"merging": _merging, "submit": _submit, "spark": _spark},
    Sizes(),
    Sizes(
        (50, 500),
        1,
        20,
        100,
        (riotbench_like,),
        real=False,
        spark=SparkSizes(2, 1, 0, 1, 100, 1, 0.5),
        submit=SubmitSizes((5, 50), 10, 2),
    ),
    "merges_per_s growth withdrawals_per_s merge_us_at_1000 merge_us_at_100000 semantic_merges_per_s semantic_reuses "
    "submit_ms_at_100 submit_ms_at_2000 submit_growth restart_s semantic_task_reduction "
    "riotbench_*_task_reduction riotbench_rw1_*_workers riotbench_*_workers_max "
    "riotbench_*_operation_s riotbench_*_cost riotbench_*_cost_reduction paper_* cpu_ratio operation_s cpu_ratio_* "
    "cpu_s_* rows_cpu_ratio_* operation_s_* submit_s_* withdraw_s_* queries_* same_rows hot_is_best_in_cpu "
    "hot_is_best_in_operations",
    plot,
)
