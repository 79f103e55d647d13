"""``headgate bench sharing --only submit``: what a submission costs without Spark, and a restart.

A dataflow of five tasks, two of which run already, is read from a file, checked, signed, merged, compiled and made
durable, with 100 and with 2,000 dataflows running, in turn; after each it is withdrawn again. Then the state directory
with 2,000 dataflows is opened as an engine does when it starts.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from headgate.documents import parse
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.state import StateDirectory
from headgate.service.load import load
from headgate.service.submit import split_submission
from headgate.sharing.deduplicate import SignedDataflow
from headgate.tasks.registry import default_registry
from headgate_benchmarks.study import Measured, Progress

__all__ = ["SubmitSizes", "run_submissions"]

REGISTRY = default_registry()


@dataclass(frozen=True, slots=True)
class SubmitSizes:
    running: tuple[int, int] = (100, 2_000)
    rounds: int = 150
    restarts: int = 7


def run_submissions(seed: int, progress: Progress, sizes: SubmitSizes) -> Measured:
    """Measure submissions at both sizes in turn, then restarts."""
    submits: dict[int, list[float]] = {size: [] for size in sizes.running}
    with tempfile.TemporaryDirectory() as place:
        folders = {size: Path(place) / str(size) for size in sizes.running}
        for size, folder in folders.items():
            progress(f"{size:,} dataflows are submitted")
            _fill(folder, size, random.Random(f"{seed} {size}"))
        with ExitStack() as stack:
            plans = {size: stack.enter_context(_opened(folder)) for size, folder in folders.items()}
            gc.collect()
            progress(f"{sizes.rounds} submissions at each size, in turn")
            for turn in range(sizes.rounds):
                file = Path(place) / f"new{turn}.json"
                file.write_text(json.dumps(_document(f"new{turn}", random.Random(f"{seed} {turn}"), most=100)))
                for size in sizes.running:
                    submits[size].append(_submitted(plans[size], file))
        progress(f"{sizes.restarts} restarts with {sizes.running[1]:,} dataflows")
        restarts = [_restarted(folders[sizes.running[1]]) for _ in range(sizes.restarts)]
    small, large = (statistics.median(taken[sizes.rounds // 5 :]) for taken in submits.values())
    figures = {
        "submit_ms_at_100": small * 1e3,
        "submit_ms_at_2000": large * 1e3,
        "submit_growth": large / small,
        "restart_s": statistics.median(restarts),
    }
    samples = {"submit_s": {str(size): taken for size, taken in submits.items()}, "restart_s": restarts}
    return Measured(figures, samples)


def _document(name: str, draw: random.Random, most: int) -> dict[str, Any]:
    """A source of so many divided by 20, a filter of twenty kinds, then two steps and a sink of its own."""
    columns = "id string, v double, w double, k bigint"
    works = [
        ("read_files", {"path": f"/in/{draw.randrange(max(most // 20, 1))}", "columns": columns}),
        ("filter", {"where": f"k = {draw.randrange(20)}"}),
        ("derive", {"columns": {"x": f"v * {draw.random():.6f}"}}),
        ("select", {"columns": ["id", "x"]}),
        ("write_files", {"path": f"/out/{name}"}),
    ]
    tasks = [{"id": f"t{n}", "type": kind, "config": config} for n, (kind, config) in enumerate(works)]
    for before, task in pairwise(tasks):
        task["inputs"] = [before["id"]]
    return {"name": name, "tasks": tasks}


@contextmanager
def _opened(folder: Path) -> Iterator[Plans]:
    state = StateDirectory(folder)
    try:
        yield Plans(state, REGISTRY)
    finally:
        state.close()


def _fill(folder: Path, size: int, draw: random.Random) -> None:
    with _opened(folder) as plans:
        change = PendingChange(plans.snapshot)
        for number in range(size):
            text = json.dumps(_document(f"flow{number}", draw, most=size))
            change = change.submitted(parse(text, "json", REGISTRY).dataflow)
        _publish(plans, change)


def _publish(plans: Plans, change: PendingChange) -> None:
    snapshot, plan = change.compiled(plans.current)
    plans.prepare(plan)
    plans.publish(snapshot, plan, change.new)


def _submitted(plans: Plans, file: Path) -> float:
    started = time.perf_counter()
    given: list[SignedDataflow] = [load(file, REGISTRY).signed]
    split = split_submission(plans.snapshot.shared.running, given, replace=False)
    change = PendingChange(plans.snapshot)
    for signed in split.new:
        change = change.submitted(signed)
    _publish(plans, change)
    taken = time.perf_counter() - started
    _publish(plans, PendingChange(plans.snapshot).withdrawn(given[0].name))
    return taken


def _restarted(folder: Path) -> float:
    gc.collect()
    started = time.perf_counter()
    with _opened(folder):
        return time.perf_counter() - started
