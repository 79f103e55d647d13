"""Monitor, analyse, plan, execute: deploy, measure, correct and plan again until the target holds or nothing helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from headgate.adaptation.deploying.analysing import Cause, Verdict, analysed
from headgate.adaptation.deploying.correcting import Knowledge, corrected, raised
from headgate.adaptation.deploying.readings import DeployWorld, Readings
from headgate.errors import Infeasible, counted
from headgate.model.cluster.vm_class import Cloud
from headgate.planning.placing.deployment_plan import (
    DeploymentPlan,
    DeployOptions,
    DeployTarget,
    Loader,
    plan_deployment,
)

__all__ = ["Attempt", "Deploying", "Outcome", "Stop", "run_to_target"]

ITERATIONS_MAX = 10
GAIN = 0.01
"""A further machine helps if throughput, or latency where that is what is missing, gets better by this share."""


class Stop(StrEnum):
    """Why the loop ended."""

    REACHED = "reached"
    BUDGET = "budget"
    NO_HELP = "a further machine does not help"
    INFEASIBLE = "infeasible"
    ITERATIONS = "iterations"


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """An iteration: what was deployed, measured and concluded."""

    plan: DeploymentPlan
    seen: Readings
    verdict: Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """All iterations, why there are no more, and the plan that is to stay."""

    attempts: tuple[Attempt, ...]
    stop: Stop
    sentence: str
    plan: DeploymentPlan | None
    """The last one that reached most; none if nothing could be planned."""

    knowledge: Knowledge

    @property
    def reached(self) -> bool:
        return self.stop is Stop.REACHED


@dataclass(frozen=True, slots=True, eq=False)
class Deploying:
    """The loop's state: pure, so that it can be written down, and decided again."""

    target: DeployTarget
    load: Loader
    cloud: Cloud
    options: DeployOptions
    knowledge: Knowledge
    attempts: tuple[Attempt, ...] = ()

    def next_plan(self) -> DeploymentPlan | Outcome:
        """The plan to be deployed now, or the end."""
        ended = self._ended()
        if ended is not None:
            return ended
        state = self
        for _ in range(ITERATIONS_MAX):
            try:
                plan = state._planned()
            except Infeasible as error:
                return self._outcome(Stop.INFEASIBLE, self._but_best(error.message))
            budget = self.target.budget_per_h
            if budget is not None and plan.placement.price_per_h > budget:
                machines = counted(plan.placement.machines, "machine")
                message = f"the next plan needs {machines} for {plan.placement.price_per_h} an hour; budget is {budget}"
                return self._outcome(Stop.BUDGET, self._but_best(f"{message} ({plan.bottleneck})"))
            last = state.attempts[-1] if state.attempts else None
            if last is None or last.verdict.cause is Cause.MACHINE_LOST or plan.shape != last.plan.shape:
                return plan
            # What was measured changes nothing in the plan, and the plan is not enough: costs must be higher.
            state = replace(state, knowledge=raised(state.knowledge, last.seen, last.plan))
        return self._outcome(Stop.NO_HELP, self._but_best("no correction of the profiles changes the plan"))

    def measured(self, plan: DeploymentPlan, seen: Readings) -> Deploying:
        """The state after a plan was deployed and measured."""
        verdict = analysed(self.target, plan, seen, self.cloud.latency_s)
        knowledge = self.knowledge if verdict.final else corrected(self.knowledge, plan, seen, verdict)
        return replace(self, knowledge=knowledge, attempts=(*self.attempts, Attempt(plan, seen, verdict)))

    def _planned(self) -> DeploymentPlan:
        limits = replace(self.options.limits, fill=min(self.knowledge.fill, self.options.limits.fill))
        options = replace(self.options, limits=limits)
        return plan_deployment(self.load, self.knowledge.planned(), self.target, self.cloud, options)

    def _ended(self) -> Outcome | None:
        if not self.attempts:
            return None
        last = self.attempts[-1]
        if last.verdict.cause is Cause.REACHED:
            return self._outcome(Stop.REACHED, last.verdict.sentence)
        if last.verdict.final:
            return self._outcome(Stop.INFEASIBLE, self._but_best(last.verdict.sentence))
        if (sentence := self._no_help()) is not None:
            return self._outcome(Stop.NO_HELP, self._but_best(sentence))
        if len(self.attempts) >= ITERATIONS_MAX:
            return self._outcome(
                Stop.ITERATIONS, self._but_best(f"{ITERATIONS_MAX} iterations; {last.verdict.sentence}")
            )
        return None

    def _no_help(self) -> str | None:
        """A sentence if the last two plans had more machines each than the one before, and did no better."""
        tried = [each for each in self.attempts if each.verdict.cause is not Cause.MACHINE_LOST][-3:]
        if len(tried) < 3:
            return None
        for before, after in pairwise(tried):
            more = after.plan.placement.machines > before.plan.placement.machines
            if not more or _better(before, after, self.target):
                return None
        last = tried[-1]
        count = last.plan.placement.machines - tried[0].plan.placement.machines
        where = f"; what holds it up is '{last.verdict.bottleneck}'" if last.verdict.bottleneck else ""
        return f"{counted(count, 'further machine')} did not help: {last.verdict.sentence}{where}"

    def best(self) -> Attempt | None:
        """The attempt that came nearest to the target; of equal ones the cheapest."""

        def rank(each: Attempt) -> tuple[bool, float, float, float]:
            done = min(each.seen.mean_throughput_per_s / self.target.rate_per_s, 1.0)
            late_s = max(each.seen.mean_latency_s - self.target.latency_s, 0.0)
            reached = each.verdict.cause is Cause.REACHED
            return reached, round(done, 2), -round(late_s, 3), -float(each.plan.placement.price_per_h)

        measured = [each for each in self.attempts if each.verdict.cause is not Cause.MACHINE_LOST]
        return max(measured, key=rank, default=None)

    def _but_best(self, sentence: str) -> str:
        best = self.best()
        if best is None:
            return sentence
        placement = best.plan.placement
        rows = f"{best.seen.mean_throughput_per_s:,.0f} rows/s within {best.seen.mean_latency_s * 1_000:,.0f} ms"
        machines = counted(placement.machines, "machine")
        return f"{sentence}; best so far: {rows} on {machines} for {placement.price_per_h} an hour"

    def _outcome(self, stop: Stop, sentence: str) -> Outcome:
        best = self.best()
        return Outcome(self.attempts, stop, sentence, None if best is None else best.plan, self.knowledge)


def _better(before: Attempt, after: Attempt, target: DeployTarget) -> bool:
    gained = after.seen.mean_throughput_per_s - before.seen.mean_throughput_per_s
    if gained >= GAIN * target.rate_per_s:
        return True
    return after.seen.mean_latency_s <= before.seen.mean_latency_s * (1 - GAIN)


def run_to_target(
    deploying: Deploying, world: DeployWorld, progress: Callable[[int, Attempt], None] | None = None
) -> Outcome:
    """Run the loop to its end in a world."""
    while True:
        plan = deploying.next_plan()
        if isinstance(plan, Outcome):
            return plan
        deploying = deploying.measured(plan, world.run(plan))
        if progress is not None:
            progress(len(deploying.attempts), deploying.attempts[-1])
