"""Profiles corrected by what a deployment was measured to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from headgate.adaptation.deploying.analysing import Cause, Verdict
from headgate.adaptation.deploying.readings import Readings
from headgate.planning.placing.deployment_plan import DeploymentPlan
from headgate.planning.placing.profiles import OperatorProfile

__all__ = ["Knowledge", "corrected"]

MOST_OVERHEAD = 4.0
FILL_STEP, LEAST_FILL = 0.95, 0.3
NEARLY = 0.9
"""Of the target's rate."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What plans are made from: profiles, what everything costs on top of them, and how full machines may be."""

    profiles: Mapping[str, OperatorProfile]
    overhead: float = 1.0
    """CPU that machines use over CPU that tasks account for: acknowledgements, threads, the system."""

    fill: float = 1.0
    raised: Mapping[str, float] = field(default_factory=dict)
    """By how much the cost of operators was raised beyond what was measured, because they did not keep up."""

    def planned(self) -> dict[str, OperatorProfile]:
        """The profiles with the overhead in them, as the paper adds it to the cost of a row."""
        return {name: self._with_overhead(profile) for name, profile in self.profiles.items()}

    def _with_overhead(self, profile: OperatorProfile) -> OperatorProfile:
        factor = self.overhead * self.raised.get(profile.task, 1.0)
        if factor == 1.0:
            return profile
        cpu, transfer, held = profile.cpu_s.value, profile.transfer_s.value, profile.sojourn_s.value
        raised = profile.corrected(
            cpu_s=cpu * factor, transfer_s=transfer * factor, sojourn_s=held + cpu * (factor - 1)
        )
        return replace(raised, version=profile.version)


def corrected(knowledge: Knowledge, plan: DeploymentPlan, seen: Readings, verdict: Verdict) -> Knowledge:
    """Take the measured cost of rows; attribute what machines used beyond it to all rows alike.

    Where only latency is too long, or the target is nearly reached, machines are filled less. Where neither an instance
    nor a machine explains why too little comes out, the cost of the operator before which most rows wait is raised by
    what is missing.
    """
    if verdict.cause is Cause.MACHINE_LOST:
        return knowledge
    profiles = dict(knowledge.profiles)
    for name, one in seen.operators.items():
        if name in profiles and one.rows_per_s > 0:
            profiles[name] = profiles[name].corrected(cpu_s=one.cpu_s, sojourn_s=one.cpu_s + one.wait_s)
    overhead = _overhead(plan, seen, profiles) or knowledge.overhead
    better = replace(knowledge, profiles=profiles, overhead=overhead)
    if verdict.cause is Cause.LATENCY or _nearly_holds(plan, seen):
        return replace(better, fill=max(knowledge.fill * FILL_STEP, LEAST_FILL))
    if verdict.cause is Cause.UNEXPLAINED:
        return raised(better, seen, plan)
    return better


def _nearly_holds(plan: DeploymentPlan, seen: Readings) -> bool:
    """Whether costs are about right, so that what lacks is room for what varies."""
    return seen.mean_throughput_per_s >= NEARLY * float(plan.loads.outside_per_s.sum())


def raised(knowledge: Knowledge, seen: Readings, plan: DeploymentPlan) -> Knowledge:
    """The cost of the operator before which most rows wait, raised by the throughput that is missing."""
    if not seen.operators:
        return replace(knowledge, fill=max(knowledge.fill * FILL_STEP, LEAST_FILL))
    name = max(seen.operators, key=lambda each: (seen.operators[each].growth_per_s, seen.operators[each].busiest))
    rate = float(plan.loads.outside_per_s.sum())
    missing = min(max(rate / max(seen.mean_throughput_per_s, 1e-9), 1.1), 2.0)
    return replace(knowledge, raised=dict(knowledge.raised) | {name: knowledge.raised.get(name, 1.0) * missing})


def _overhead(plan: DeploymentPlan, seen: Readings, profiles: Mapping[str, OperatorProfile]) -> float | None:
    """What machines used over what tasks account for, at the rates that were measured."""
    names = plan.items.names
    used = sum(seen.cpu_by_site.get(site.name, 0.0) for site in plan.placement.sites)
    planned = plan.loads.in_per_s
    rows = np.array([seen.operators[name].rows_per_s if name in seen.operators else 0.0 for name in names])
    share = np.divide(rows, planned, out=np.zeros_like(rows), where=planned > 0)
    work = float((rows * np.array([profiles[name].cpu_s.value for name in names])).sum())
    transfer = np.array([profiles[name].transfer_s.value for name in names])
    crossing = np.zeros(len(names))
    for site in plan.placement.sites:
        on = plan.counts(site)
        before = np.array([each.transfer_s.value for each in plan.loads.profiles])
        each = on * (plan.items.transfer - plan.items.own_saving @ on)
        crossing += np.divide(each, before, out=np.zeros_like(each), where=before > 0)  # rows per second
    accounted = work + float((crossing * share * transfer).sum())
    fixed = sum(
        plan.items.batch_of(plan.counts(site)) for site in plan.placement.sites if site.name in seen.cpu_by_site
    )
    if accounted <= 0 or used <= fixed:
        return None
    return min(max((used - fixed) / accounted, 1.0), MOST_OVERHEAD)
