"""``headgate bench crash``: engines are killed, over and over, and a judge from outside compares what came out.

- ``steps``: an engine ends itself at every durable step (:mod:`headgate.store.durable_steps`), before it, in its middle
  and after it, while each kind of change is made: submit, withdraw, replace, switch, pause, partitions; and submit and
  withdraw under each other strategy. Points that no engine comes to are listed;
- ``pure``: what makes outputs durable is killed at its steps in forked processes without Spark, hundreds of times a
  minute; counted by themselves, ``pure_kills``, and not among ``kills``;
- ``random``: engine, JVM, Python daemon and Python workers are killed at random moments with changes in flight;
- ``jvm``: the JVM of an engine that runs by the command is killed under load, and ``jvm_back_p95_s`` says after how
  long rows come out again that arrived after a kill.

The judge (``tests/judge``) knows the input files, the answers and their clocks, and nothing of the engine. ``lost``,
``doubled``, ``out_of_order``, ``stale_plan`` and ``half_applied`` count rows, or changes, that are wrong; all must be
0. ``stuck`` counts engines that did not come back. The JVM stays warm unless it is what is killed: what a step writes,
the engine's Python process writes.

``HEADGATE_CRASH_KILLS`` limits the kills of a part. ``HEADGATE_CRASH_SECONDS`` limits the time, and
``HEADGATE_CRASH_LOG`` names a file to which each campaign is added as it ends: what is in it is not done again, so that
a long run can be made in several. Figures are of all that is in the file.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
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
    """Kills of the enumeration; all that can be made without a number."""

    random: int = 500
    jvm: int = 20
    pure: int = 1_000
    in_a_row: int = 30
    """Kills of one state directory before it is judged."""

    engines: int = 3
    """Side by side."""


def _limited(count: int) -> int:
    return min(count, int(os.environ.get("HEADGATE_CRASH_KILLS", count)))


JUDGING_S = 60.0
"""How long before its end a run makes no kills any more, so that what was done can be judged."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """Kills that follow each other: at steps while changes of a kind are made, or at random."""

    name: str
    kind: str = "random"
    strategy: str = "hot"
    kills: int = 1_000_000
    supervised: bool = False

    @property
    def part(self) -> str:
        return "random" if self.kind == "random" else "steps"


class Log:
    """The results of campaigns, in a file if there is a name for one."""

    def __init__(self, path: Path | None) -> None:
        from tests.judge.campaign import Result

        self._path, self._lock = path, Lock()
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        known = [json.loads(line) for line in lines]
        self._results = [(one["campaign"], Result.from_dict(one)) for one in known]

    def add(self, campaign: Campaign, result: Any) -> None:
        with self._lock:
            self._results.append((campaign.name, result))
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"campaign": campaign.name, **result.as_dict()}) + "\n")

    def total(self, begins: str) -> Any:
        """All results of campaigns whose name begins so."""
        from tests.judge.campaign import Result

        total = Result()
        for name, result in list(self._results):
            if name.startswith(begins):
                total.add(result)
        return total


def _campaigns(part: str, sizes: Sizes) -> list[Campaign]:
    from tests.judge.campaign import STRATEGIES
    from tests.judge.scenario import KINDS

    if part == "steps":
        pairs = [(kind, "hot") for kind in KINDS]
        pairs += [(kind, strategy) for strategy in STRATEGIES for kind in ("submit", "withdraw")]
        most = _limited(10_000 if sizes.steps is None else sizes.steps)
        return [Campaign(f"steps {kind} {strategy}", kind, strategy, most) for kind, strategy in pairs[:most]]
    sizes_of_groups = [len(some) for some in _groups(range(_limited(sizes.random)), sizes.in_a_row)]
    return [
        Campaign(f"random {number:03d}", kills=kills, supervised=number % 4 == 3)
        for number, kills in enumerate(sizes_of_groups)
    ]


def _kills(parts: Sequence[str], seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Make the campaigns of some parts, a few at once."""
    make_importable()
    named = os.environ.get("HEADGATE_CRASH_LOG")
    log = Log(Path(named) if named else None)
    until = time.monotonic() + float(os.environ.get("HEADGATE_CRASH_SECONDS", "1e9")) - JUDGING_S
    of_parts = [_campaigns(part, sizes) for part in parts]
    waiting = SimpleQueue[tuple[int, Campaign]]()
    for numbered in enumerate(campaign for some in zip_longest(*of_parts) for campaign in some if campaign is not None):
        waiting.put(numbered)

    def work() -> None:
        from tests.judge.processes import WarmStarts

        warm = WarmStarts()
        try:
            while time.monotonic() < until:
                number, campaign = waiting.get_nowait()
                _make(campaign, seed + 1_000 * number, warm, log, sizes, until, progress)
        except Empty:
            return
        finally:
            warm.close()

    with ThreadPoolExecutor(sizes.engines) as pool:
        for done in [pool.submit(work) for _ in range(sizes.engines)]:
            done.result()
    return reduce(Measured.__or__, (_measured(part, log.total(part)) for part in parts))


def _make(campaign: Campaign, seed: int, warm: Any, log: Log, sizes: Sizes, until: float, progress: Progress) -> None:
    """Make what is left of a campaign, each time with a new state directory."""
    from tests.judge.campaign import Limits, kill_at_random, kill_at_steps, points
    from tests.judge.processes import ColdStarts

    while time.monotonic() < until:
        before = log.total(campaign.name)
        left, most = set(points()) - before.steps - before.unreached, campaign.kills - before.made
        if most <= 0 or not left:
            return
        limits = Limits(min(most, sizes.in_a_row), until)
        seeded = seed + before.made
        with tempfile.TemporaryDirectory(prefix="headgate-crash-", ignore_cleanup_errors=True) as place:
            if campaign.part == "steps":
                arguments = (left, limits, warm, progress, campaign.strategy)
                result = kill_at_steps(Path(place), seeded, campaign.kind, *arguments)
            else:
                starts = ColdStarts() if campaign.supervised else warm
                result = kill_at_random(Path(place), seeded, limits, starts, progress, campaign.supervised)
        if result.made or result.unreached or result.stuck:
            log.add(campaign, result)
        if result.stuck and not result.made:
            return


def _steps(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return _kills(["steps"], seed, progress, sizes)


def _random(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return _kills(["random"], seed, progress, sizes)


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


def _jvm(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    make_importable()
    from tests.judge.campaign import Limits, kill_jvm

    with tempfile.TemporaryDirectory(prefix="headgate-crash-", ignore_cleanup_errors=True) as place:
        result = kill_jvm(Path(place), seed, Limits(_limited(sizes.jvm)), progress)
    ordered = sorted(result.back_s)
    times = {"p50": statistics.median(ordered), "p95": ordered[math.ceil(0.95 * len(ordered)) - 1], "max": ordered[-1]}
    measured = _measured("jvm", result)
    return measured | Measured({f"jvm_back_{name}_s": value for name, value in times.items()}, {"jvm_back_s": ordered})


def _groups(cases: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [cases[at : at + size] for at in range(0, len(cases), size)]


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
    never = sorted({step for _, step in result.unreached} - reached)
    notes = {"steps that were never reached": ", ".join(never)} if never else {}
    evidence = [*result.verdict.evidence, *(f"stuck: {text}" for text in result.stuck)]
    return Measured(figures, {f"{part}_evidence": evidence}, notes=notes)


def _whole(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    measured = _pure(seed, progress, sizes) | _kills(["steps", "random"], seed, progress, sizes)
    measured = measured | _jvm(seed, progress, sizes)
    names = ("kills", *FAULTS, "stuck", "rows")
    totals = {name: sum(measured.figures[f"{part}_{name}"] for part in ("steps", "random", "jvm")) for name in names}
    return Measured(totals) | measured


CRASH = Benchmark(
    "crash",
    "Kills at every durable step and at random, judged from outside.",
    {"pure": _pure, "steps": _steps, "random": _random, "jvm": _jvm},
    Sizes(),
    Sizes(steps=1, random=2, jvm=1, pure=10, in_a_row=2, engines=1),
    " ".join(("kills", *FAULTS, "stuck", "pure_kills", "steps_kills", "random_kills", "jvm_kills", "jvm_back_p95_s")),
    whole=_whole,
    own_cluster=True,
)
