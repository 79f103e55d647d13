"""Campaigns of kills: an engine is changed and killed many times over, then what its sinks hold is judged.

Kills at durable steps are enumerated: each step, before it, in its middle and after it, while each kind of change is
made. Kills at random moments hit any process of the engine.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from headgate.store.durable_steps import MOMENTS, STEPS
from tests.judge.processes import ColdStarts, Starts
from tests.judge.rig import Rig, rig_in
from tests.judge.scenario import BASE, KINDS, Scenario
from tests.judge.verdict import Verdict

__all__ = [
    "ELSEWHERE",
    "PROCESSES",
    "STRATEGIES",
    "Limits",
    "Point",
    "Result",
    "kill_at_random",
    "kill_at_steps",
    "kill_jvm",
    "points",
]

ELSEWHERE = {
    "version": "an engine makes its state directory once, before it answers",
    "machine": "only a local cluster writes it",
}
"""Steps that no change of dataflows comes to."""

EVERY_EPOCH = frozenset(
    ("staged-file", "state-file", "commit", "batch-files", "batch", "head", "position", "delivery", "delivered")
)
"""Steps of each micro-batch, several times."""

PROCESSES = ("engine", "worker", "engine", "daemon", "engine", "worker")
SUPERVISED = ("jvm", "worker", "engine", "daemon", "supervisor", "jvm")
STRATEGIES = ("incremental", "replace", "none")
IN_VAIN = 3
"""After so many changes in a row at which an engine has come to none of the steps that are left, it never does."""

VAIN_S = 3.0
"""How long to wait for what follows from a change; longer each time that it was in vain."""

Progress = Callable[[str], None]


Point = tuple[str, str]
"""A moment and a step."""


@dataclass(slots=True)
class Result:
    """What a campaign has done, and what the judge says."""

    kills: Counter[str] = field(default_factory=Counter)
    """By kind of change, or by process."""

    steps: set[Point] = field(default_factory=set)
    """At which an engine has ended."""

    unreached: set[Point] = field(default_factory=set)
    """To which no engine came, however often the change was made."""

    verdict: Verdict = field(default_factory=Verdict)
    restart_s: list[float] = field(default_factory=list)
    back_s: list[float] = field(default_factory=list)
    """After how long rows came out again that had arrived after a kill."""

    stuck: list[str] = field(default_factory=list)
    """Why an engine did not come back, or did not go on."""

    @property
    def made(self) -> int:
        """Kills."""
        return sum(self.kills.values())

    def add(self, other: Result) -> None:
        self.kills += other.kills
        self.steps |= other.steps
        self.unreached |= other.unreached
        self.restart_s += other.restart_s
        self.back_s += other.back_s
        self.stuck += other.stuck
        self.verdict.counts += other.verdict.counts
        self.verdict.rows += other.verdict.rows
        self.verdict.evidence += other.verdict.evidence

    def as_dict(self) -> dict[str, Any]:
        """For a file, from which :meth:`from_dict` reads it."""
        judged = {"counts": self.verdict.counts, "rows": self.verdict.rows, "evidence": self.verdict.evidence}
        reached = {"steps": sorted(self.steps), "unreached": sorted(self.unreached)}
        return {
            "kills": self.kills,
            **reached,
            **judged,
            "restart_s": self.restart_s,
            "back_s": self.back_s,
            "stuck": self.stuck,
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Result:
        verdict = Verdict(Counter(given["counts"]), given["evidence"], given["rows"])
        steps, unreached = ({(moment, step) for moment, step in given[key]} for key in ("steps", "unreached"))
        return cls(
            Counter(given["kills"]), steps, unreached, verdict, given["restart_s"], given["back_s"], given["stuck"]
        )


def points() -> list[Point]:
    """Each step before it, in its middle and after it."""
    return [(moment, step) for step in STEPS if step not in ELSEWHERE for moment in MOMENTS]


@dataclass(frozen=True, slots=True)
class Limits:
    """When a campaign ends, after how many kills or at which time of the monotonic clock, so that it can be judged."""

    kills: int
    until: float = float("inf")

    def allow(self, made: int) -> bool:
        return made < self.kills and time.monotonic() < self.until


def kill_at_steps(
    folder: Path,
    seed: int,
    kind: str,
    wanted: Collection[Point],
    limits: Limits,
    starts: Starts,
    progress: Progress,
    strategy: str = "hot",
) -> Result:
    """Kill one engine at steps, one after the other, while changes of a kind are made, and judge it at the end.

    It ends at the first of the steps that are left; so each is reached that can be, and none is waited for.
    """

    def each(rig: Rig, scenario: Scenario, result: Result) -> None:
        left, in_vain = set(wanted), 0
        while left and in_vain < IN_VAIN and limits.allow(result.made):
            scenario.ready(kind)
            with rig.aimed(*(_aim(rig, point, in_vain) for point in sorted(left))) as ended:
                scenario.change(kind)
                rig.wait_for_epoch(lambda: ended() is not None, VAIN_S * (1 + 2 * in_vain))
                at = ended()
            rig.recover()
            rig.settle()
            in_vain = in_vain + 1 if at is None else 0
            if at is not None:
                left.discard(at)
                result.steps.add(at)
                result.kills[kind if strategy == "hot" else f"strategy {strategy}"] += 1
        if in_vain == IN_VAIN:
            result.unreached |= left

    return _campaign(folder, seed, each, progress, starts, "--strategy", strategy)


def _aim(rig: Rig, point: Point, in_vain: int) -> str:
    """A step of every epoch is not always the first of its kind, so that it comes before, in or after the change."""
    moment, step = point
    return f"{moment} {step} {rig.rnd.choice([1, 1, 3]) if step in EVERY_EPOCH and not in_vain else 1}"


def kill_at_random(
    folder: Path, seed: int, limits: Limits, starts: Starts, progress: Progress, supervised: bool = False
) -> Result:
    """Kill processes of one engine at random moments, with changes in flight, and judge it at the end.

    A supervised engine is started by the command, with a JVM of its own, and starts itself again.
    """
    processes = SUPERVISED if supervised else PROCESSES

    def each(rig: Rig, scenario: Scenario, result: Result) -> None:
        while limits.allow(result.made):
            what = processes[result.made % len(processes)]
            kind = rig.rnd.choice(KINDS)
            scenario.ready(kind)
            killed = rig.killed_soon(what, rig.rnd.uniform(0.0, 0.4))
            scenario.change(kind)
            time.sleep(rig.rnd.uniform(0.0, 1.0))
            result.kills[f"{what}, supervised" if supervised else what] += killed()
            rig.recover()
            rig.settle()

    return _campaign(folder, seed, each, progress, starts)


def kill_jvm(folder: Path, seed: int, limits: Limits, progress: Progress) -> Result:
    """Kill the JVM of a supervised engine under load, each time once it is back: how long is nothing delivered?"""

    def each(rig: Rig, scenario: Scenario, result: Result) -> None:
        del scenario
        while limits.allow(result.made):
            rig.wait_for(lambda: rig.kill("jvm"), "a JVM")
            began = time.monotonic()
            rig.wait_for(partial(rig.has, BASE, "rows", rig.fed_rows), "rows that arrived after a kill")
            result.back_s.append(time.monotonic() - began)
            result.kills["jvm, supervised"] += 1
            progress(f"back after {result.back_s[-1]:.1f} s")
            time.sleep(rig.rnd.uniform(5.0, 8.0))  # so that it counts as healthy, and its next pause is short

    starts = ColdStarts()
    try:
        return _campaign(folder, seed, each, progress, starts)
    finally:
        starts.close()


def _campaign(
    folder: Path,
    seed: int,
    each: Callable[[Rig, Scenario, Result], None],
    progress: Progress,
    starts: Starts,
    *arguments: str,
) -> Result:
    result = Result()
    with rig_in(folder, seed, *arguments, starts=starts) as rig:
        scenario = Scenario(rig)
        try:
            scenario.begin()
            with rig.fed():
                each(rig, scenario, result)
            result.verdict = rig.finish()
        except AssertionError as error:  # judged all the same would be judged too early
            result.stuck.append(str(error)[-1500:])
        result.restart_s = rig.restart_s
    progress(f"{result.made} kills, {len(result.unreached)} not reached: {result.verdict}")
    return result
