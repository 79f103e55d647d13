"""Campaigns of kills: an engine is changed and killed many times over, then what its sinks hold is judged.

Kills at durable steps are enumerated: each step, before it, in its middle and after it, while each kind of change is
made. Kills at random moments hit any process of the engine.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate.store.durable_steps import MOMENTS, STEPS
from tests.judge.rig import Rig, rig_in
from tests.judge.scenario import KINDS, Scenario
from tests.judge.verdict import Verdict

__all__ = ["ELSEWHERE", "PROCESSES", "Result", "StepKill", "kill_at_random", "kill_at_steps", "step_kills"]

ELSEWHERE = {
    "version": "an engine makes its state directory once, before it answers",
    "machine": "only a local cluster writes it",
}
"""Steps that no change of dataflows comes to."""

EVERY_EPOCH = frozenset(("staged-file", "commit", "batch-files", "batch", "head", "position", "delivery", "delivered"))
"""Steps of each micro-batch: on a busy machine it takes a while until there is one."""

PROCESSES = ("engine", "worker", "worker", "daemon", "worker", "engine")
SUPERVISED = ("jvm", "worker", "engine", "daemon", "supervisor", "worker")
STRATEGIES = ("incremental", "replace", "none")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StepKill:
    """End the engine at a step while a kind of change is made."""

    moment: str
    step: str
    kind: str
    count: int = 1


@dataclass(slots=True)
class Result:
    """What a campaign has done, and what the judge says."""

    kills: Counter[str] = field(default_factory=Counter)
    """By kind of change, or by process."""

    steps: set[tuple[str, str]] = field(default_factory=set)
    """Moments and steps at which an engine has ended."""

    unreached: list[StepKill] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    restart_s: list[float] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    """Why an engine did not come back, or did not go on."""

    def add(self, other: Result) -> None:
        self.kills += other.kills
        self.steps |= other.steps
        self.unreached += other.unreached
        self.restart_s += other.restart_s
        self.stuck += other.stuck
        self.verdict.counts += other.verdict.counts
        self.verdict.rows += other.verdict.rows
        self.verdict.evidence += other.verdict.evidence


def step_kills(seed: int, kinds: Sequence[str] = KINDS) -> list[StepKill]:
    """Every step, moment and kind of change, in an order drawn from the seed."""
    drawn = random.Random(seed)
    steps = [step for step in STEPS if step not in ELSEWHERE]
    kills = [StepKill(m, s, k, drawn.choice([1, 1, 2])) for m, s, k in itertools.product(MOMENTS, steps, kinds)]
    drawn.shuffle(kills)
    return kills


def kill_at_steps(
    folder: Path, seed: int, kills: Sequence[StepKill], progress: Progress, strategy: str = "hot"
) -> Result:
    """Kill one engine at steps, one after the other, and judge it at the end."""

    def each(rig: Rig, scenario: Scenario, result: Result) -> None:
        for kill in kills:
            scenario.ready(kill.kind)
            with rig.aimed(f"{kill.moment} {kill.step} {kill.count}") as has_ended:
                scenario.change(kill.kind)
                until = time.monotonic() + (60.0 if kill.step in EVERY_EPOCH else 1.5)
                while not has_ended() and time.monotonic() < until:
                    time.sleep(0.02)
                ended = has_ended()
            rig.recover()
            rig.settle()
            if ended:
                result.kills[kill.kind if strategy == "hot" else f"strategy {strategy}"] += 1
                result.steps.add((kill.moment, kill.step))
            else:
                result.unreached.append(kill)

    return _campaign(folder, seed, each, progress, "--strategy", strategy)


def kill_at_random(folder: Path, seed: int, count: int, progress: Progress, supervised: bool = False) -> Result:
    """Kill processes of one engine at random moments, with changes in flight, and judge it at the end.

    A supervised engine is started by the command, with a JVM of its own, and starts itself again.
    """
    processes = SUPERVISED if supervised else PROCESSES

    def each(rig: Rig, scenario: Scenario, result: Result) -> None:
        for number in range(count):
            what = processes[number % len(processes)]
            kind = rig.rnd.choice(KINDS)
            scenario.ready(kind)
            killed = rig.killed_soon(what, rig.rnd.uniform(0.0, 0.4))
            scenario.change(kind)
            time.sleep(rig.rnd.uniform(0.0, 1.0))
            result.kills[f"{what}, supervised" if supervised else what] += killed()
            rig.recover()
            rig.settle()

    return _campaign(folder, seed, each, progress, warm=not supervised)


def _campaign(
    folder: Path,
    seed: int,
    each: Callable[[Rig, Scenario, Result], None],
    progress: Progress,
    *arguments: str,
    warm: bool = True,
) -> Result:
    result = Result()
    with rig_in(folder, seed, *arguments, warm=warm) as rig:
        scenario = Scenario(rig)
        try:
            scenario.begin()
            with rig.fed():
                each(rig, scenario, result)
            result.verdict = rig.finish()
        except AssertionError as error:  # judged all the same would be judged too early
            result.stuck.append(str(error)[-1500:])
        result.restart_s = rig.restart_s
    progress(f"{sum(result.kills.values())} kills, {len(result.unreached)} not reached: {result.verdict}")
    return result
