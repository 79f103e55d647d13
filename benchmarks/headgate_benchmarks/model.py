"""``headgate bench model``: from the text of a dataflow to its signed value, by size.

Each sample reads the whole text in one format, checks it, removes duplicates and signs it, as submitting it would.
Sizes take turns, so a slow moment of the machine falls on all of them.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable

from headgate.documents import parse, yaml_form
from headgate.sharing.deduplicate import deduplicate
from headgate.tasks.registry import default_registry
from headgate_benchmarks.measured import Measured
from headgate_benchmarks.workloads import layered_document

__all__ = ["run"]

ROUNDS = 5
SIZES = (1_000, 10_000, 100_000)
FORMS = ("yaml", "json")


def run(seed: int, progress: Callable[[str], None]) -> Measured:
    """Measure every size and format, round by round."""
    registry = default_registry()
    parse(
        "tasks: [{id: a, type: rate}, {id: b, type: filter, config: {where: value > 1}, inputs: [a]}]", "yaml", registry
    )
    texts: dict[tuple[str, int, int], str] = {}
    samples: dict[str, list[float]] = {f"{form}_{size}": [] for form in FORMS for size in SIZES}
    for turn in range(ROUNDS):
        progress(f"round {turn + 1} of {ROUNDS}")
        for size in SIZES:
            # Small ones are repeated with other content, so that one sample is not shorter than the clock's noise.
            repeats = max(1, 10_000 // size)
            for offset, form in enumerate(FORMS):
                texts = {}
                for repeat in range(repeats):
                    # Each sample has content of its own: what is remembered of another would flatter it.
                    document = layered_document(size, seed + 1_000 * turn + 100 * offset + repeat)
                    texts[form, size, repeat] = yaml_form.write(document) if form == "yaml" else json.dumps(document)
                gc.collect()
                started = time.process_time()
                for text in texts.values():
                    deduplicate(parse(text, form, registry).dataflow)
                samples[f"{form}_{size}"].append((time.process_time() - started) / repeats)
    figures: dict[str, float] = {}
    for form in FORMS:
        per_task = {size: statistics.median(samples[f"{form}_{size}"]) / size for size in SIZES}
        figures[f"{form}_seconds_at_10000"] = per_task[10_000] * 10_000
        figures[f"{form}_tasks_per_s"] = 1 / per_task[10_000]
        figures[f"{form}_growth"] = per_task[100_000] / per_task[1_000]
    slowest = min(FORMS, key=lambda form: figures[f"{form}_tasks_per_s"])
    figures["tasks_per_s"] = figures[f"{slowest}_tasks_per_s"]
    figures["growth"] = max(figures[f"{form}_growth"] for form in FORMS)
    return Measured({name: round(value, 4) for name, value in figures.items()}, dict(samples))
