"""``headgate bench crash``: engines are killed, over and over, and a judge from outside compares what came out.

- ``steps``: an engine ends itself at every durable step (:mod:`headgate.store.durable_steps`), before it, in its middle
  and after it, while each kind of change is made: submit, withdraw, replace, switch, pause, partitions; and submit and
  withdraw under each other strategy;
- ``pure``: what makes outputs durable is killed at its steps in forked processes without Spark, hundreds of times a
  minute; counted by themselves, ``pure_kills``, and not among ``kills``;
- ``random``: engine, JVM, Python daemon and Python workers are killed at random moments with changes in flight.

The judge (``tests/judge``) knows the input files, the answers and their clocks, and nothing of the engine. ``lost``,
``doubled``, ``out_of_order``, ``stale_plan`` and ``half_applied`` count rows, or changes, that are wrong; all must be
0. ``stuck`` counts engines that did not come back. The JVM stays warm unless it is what is killed: what a step writes,
the engine's Python process writes, and a start takes 4 s instead of 20. ``HEADGATE_CRASH_KILLS`` limits the kills of a
part.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.store.durable_steps import VARIABLE
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.checkout import ROOT, make_importable
from headgate_benchmarks.study import Measured, Progress

__all__ = ["CRASH"]

FAULTS = ("lost", "doubled", "out_of_order", "stale_plan", "half_applied")


@dataclass(frozen=True, slots=True)
class Sizes:
    steps: int | None = None
    """Cases of the enumeration; all of them without a number."""

    strategies: int = 40
    """Cases under each strategy but the usual one."""

    random: int = 500
    pure: int = 1_000
    in_a_row: int = 20
    """Kills of one state directory before it is judged."""

    engines: int = 2
    """Side by side."""


def _limited(count: int) -> int:
    return min(count, int(os.environ.get("HEADGATE_CRASH_KILLS", count)))


def _steps(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    make_importable()
    from tests.judge.campaign import STRATEGIES, kill_at_steps, step_kills

    cases = step_kills(seed)
    cases = cases[: _limited(len(cases) if sizes.steps is None else sizes.steps)]
    others = step_kills(seed, ("submit", "withdraw"))[: _limited(sizes.strategies)]
    groups = [(some, "hot") for some in _groups(cases, sizes.in_a_row)]
    groups += [(some, strategy) for strategy in STRATEGIES for some in _groups(others, sizes.in_a_row)]

    def run(folder: Path, number: int) -> Any:
        some, strategy = groups[number]
        return kill_at_steps(folder, seed + number, some, progress, strategy)

    return _measured("steps", _run(run, len(groups), sizes.engines))


def _pure(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    del seed  # all cases are enumerated
    make_importable()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, VARIABLE: str(Path(folder) / "aim")}
        command = [sys.executable, "-m", "tests.judge.pure", str(_limited(sizes.pure))]
        done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    outcome = json.loads(done.stdout)
    faults = [text.partition(":")[0] for text in outcome["wrong"]]
    progress(f"{outcome['kills']} kills without Spark, {len(faults)} faults")
    figures = {f"pure_{fault}": faults.count(fault) for fault in (*FAULTS, "stuck")}
    return Measured({"pure_kills": outcome["kills"], **figures}, {"pure_evidence": outcome["wrong"]})


def _random(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    make_importable()
    from tests.judge.campaign import kill_at_random

    counts = [len(some) for some in _groups(range(_limited(sizes.random)), sizes.in_a_row)]

    def run(folder: Path, number: int) -> Any:
        return kill_at_random(folder, seed + 5_000 + number, counts[number], progress, supervised=number % 3 == 2)

    return _measured("random", _run(run, len(counts), sizes.engines))


def _groups(cases: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [cases[at : at + size] for at in range(0, len(cases), size)]


def _run(job: Callable[[Path, int], Any], count: int, engines: int) -> Any:
    """Run jobs by their numbers, a few at once, each in a folder of its own, and add up what they say."""
    from tests.judge.campaign import Result

    def run(number: int) -> Any:
        with tempfile.TemporaryDirectory(prefix="headgate-crash-", ignore_cleanup_errors=True) as folder:
            return job(Path(folder), number)

    total = Result()
    with ThreadPoolExecutor(engines) as pool:
        for result in pool.map(run, range(count)):
            total.add(result)
    return total


def _measured(part: str, result: Any) -> Measured:
    figures: dict[str, Any] = {f"{part}_kills": sum(result.kills.values())}
    figures |= {f"{part}_{fault}": result.verdict.counts[fault] for fault in FAULTS}
    figures |= {f"{part}_stuck": len(result.stuck), f"{part}_rows": result.verdict.rows}
    figures |= {f"{part}_not_reached": len(result.unreached), f"{part}_points": len(result.steps)}
    figures |= {
        f"{part}_kills_{kind.replace(', ', '_').replace(' ', '_')}": count
        for kind, count in sorted(result.kills.items())
    }
    if result.restart_s:
        figures[f"{part}_restart_s"] = statistics.median(result.restart_s)
    reached = {step for _, step in result.steps}
    never = sorted({kill.step for kill in result.unreached} - reached)
    notes = {"steps that were never reached": ", ".join(never)} if never else {}
    evidence = [*result.verdict.evidence, *(f"stuck: {text}" for text in result.stuck)]
    return Measured(figures, {f"{part}_evidence": evidence}, notes=notes)


def _whole(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    measured = _pure(seed, progress, sizes) | _steps(seed, progress, sizes) | _random(seed, progress, sizes)
    names = ("kills", *FAULTS, "stuck", "rows")
    totals = {name: sum(measured.figures[f"{part}_{name}"] for part in ("steps", "random")) for name in names}
    return Measured(totals) | measured


CRASH = Benchmark(
    "crash",
    "Kills at every durable step and at random, judged from outside.",
    {"pure": _pure, "steps": _steps, "random": _random},
    Sizes(),
    Sizes(steps=2, strategies=0, random=2, pure=10, in_a_row=2, engines=1),
    " ".join(("kills", *FAULTS, "stuck", "pure_kills", "steps_kills", "random_kills")),
    whole=_whole,
    own_cluster=True,
)
