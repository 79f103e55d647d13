"""``headgate bench model``: from the text of a dataflow to its signed value, by size.

Each sample reads a whole text in one format, checks it, removes duplicates and signs it, as a submission does. Sizes
take turns, so that a slow moment of the machine affects all of them.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass

from headgate.documents import parse, yaml_form
from headgate.sharing.deduplicate import deduplicate
from headgate.tasks.registry import default_registry
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.workloads import layered_document

__all__ = ["MODEL"]

FORMS = ("yaml", "json")


@dataclass(frozen=True, slots=True)
class Sizes:
    tasks: tuple[int, int, int] = (1_000, 10_000, 100_000)
    rounds: int = 5


def _run(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    registry = default_registry()
    parse(
        "tasks: [{id: a, type: rate}, {id: b, type: filter, config: {where: value > 1}, inputs: [a]}]", "yaml", registry
    )
    samples: defaultdict[str, list[float]] = defaultdict(list)
    for turn in range(sizes.rounds):
        for size in sizes.tasks:
            repeats = max(1, sizes.tasks[1] // size)
            for offset, form in enumerate(FORMS):
                progress(f"round {turn + 1} of {sizes.rounds}: {size:,} tasks as {form}")
                # A text of its own each time: what was parsed before is remembered.
                seeds = (seed + 1_000 * turn + 100 * offset + repeat for repeat in range(repeats))
                documents = [layered_document(size, each) for each in seeds]
                texts = [yaml_form.write(each) if form == "yaml" else json.dumps(each) for each in documents]
                del documents
                gc.collect()
                started = time.process_time()
                for text in texts:
                    deduplicate(parse(text, form, registry).dataflow)
                samples[f"{form}_{size}"].append((time.process_time() - started) / repeats)
    return Measured(_figures(samples, sizes), dict(samples))


def _figures(samples: dict[str, list[float]], sizes: Sizes) -> dict[str, float]:
    figures: dict[str, float] = {}
    small, middle, large = sizes.tasks
    for form in FORMS:
        per_task = {size: statistics.median(samples[f"{form}_{size}"]) / size for size in sizes.tasks}
        figures[f"{form}_seconds_at_10000"] = per_task[middle] * middle
        figures[f"{form}_tasks_per_s"] = 1 / per_task[middle]
        figures[f"{form}_growth"] = per_task[large] / per_task[small]
    figures["tasks_per_s"] = min(figures[f"{form}_tasks_per_s"] for form in FORMS)
    figures["growth"] = max(figures[f"{form}_growth"] for form in FORMS)
    return figures


MODEL = Benchmark(
    "model",
    "Reading, checking and signing dataflows of 1,000 to 100,000 tasks.",
    {"model": _run},
    Sizes(),
    Sizes((50, 500, 2_000), 1),
    "*_seconds_at_10000 *_tasks_per_s *_growth tasks_per_s growth",
)
