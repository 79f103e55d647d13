"""The boundary rules: whether a target holds and, if not, what holds it up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from headgate.adaptation.deploying.readings import OperatorReading, Readings
from headgate.errors import counted
from headgate.planning.placing.deployment_plan import DeploymentPlan, DeployTarget

__all__ = ["Cause", "Verdict", "analysed"]

TOLERATED = 0.02
"""By how much throughput may miss the target, and queues may grow, relative to the rate."""

SATURATED, FULL = 0.97, 0.95
"""Above these shares an instance has no time left, and a machine no CPU."""

UNEVEN = 1.3
"""An instance that gets so many times the mean share gets it because of its keys."""


class Cause(StrEnum):
    """What a deployment lacks."""

    REACHED = "reached"
    MACHINE_LOST = "machine lost"
    SOURCE = "source"
    SKEW = "key skew"
    TOO_FAR = "latency cannot be met"
    INSTANCE = "instance"
    MACHINE = "machine"
    LATENCY = "latency"
    UNEXPLAINED = "unexplained"


FINAL = frozenset({Cause.REACHED, Cause.SOURCE, Cause.SKEW, Cause.TOO_FAR})
"""After these, no other plan would do better."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause, the operator or machine that it is about, and a sentence."""

    cause: Cause
    bottleneck: str
    sentence: str

    @property
    def final(self) -> bool:
        return self.cause in FINAL


@dataclass(frozen=True, slots=True)
class _Case:
    target: DeployTarget
    plan: DeploymentPlan
    seen: Readings
    hop_s: float

    @property
    def keeps_up(self) -> bool:
        rate = self.target.rate_per_s
        return self.seen.mean_throughput_per_s >= rate * (1 - TOLERATED) and self.seen.growth_per_s <= rate * TOLERATED

    @property
    def in_time(self) -> bool:
        return self.seen.mean_latency_s <= self.target.latency_s

    @property
    def held_up(self) -> str:
        """The shortfall, as the beginning of a sentence."""
        seen, target = self.seen, self.target
        if self.keeps_up:
            return f"latency is {seen.mean_latency_s * 1_000:,.0f} ms, {target.latency_s * 1_000:,.0f} ms are allowed"
        share = seen.mean_throughput_per_s / target.rate_per_s
        return f"{seen.mean_throughput_per_s:,.0f} of {target.rate_per_s:,.0f} rows/s ({share:.0%})"

    def busiest(self) -> tuple[str, OperatorReading] | None:
        there = self.seen.operators
        return max(there.items(), key=lambda each: each[1].busiest, default=None)


def analysed(target: DeployTarget, plan: DeploymentPlan, seen: Readings, hop_s: float = 0.0) -> Verdict:
    """Go through the rules in order; the first that holds decides (P-DEPLOY, section 6)."""
    case = _Case(target, plan, seen, hop_s)
    for rule in RULES:
        verdict = rule(case)
        if verdict is not None:
            return verdict
    return Verdict(Cause.UNEXPLAINED, "", f"{case.held_up}, and no instance or machine is busy all the time")


def _lost(case: _Case) -> Verdict | None:
    if not case.seen.lost:
        return None
    names = ", ".join(case.seen.lost)
    return Verdict(Cause.MACHINE_LOST, names, f"{names} died while it was measured; nothing follows from this run")


def _reached(case: _Case) -> Verdict | None:
    if not (case.keeps_up and case.in_time):
        return None
    seen = case.seen
    return Verdict(
        Cause.REACHED,
        "",
        f"{seen.mean_throughput_per_s:,.0f} rows/s within {seen.mean_latency_s * 1_000:,.0f} ms "
        f"on {counted(case.plan.placement.machines, 'machine')}",
    )


def _source(case: _Case) -> Verdict | None:
    offered, rate = case.seen.offered_per_s, case.target.rate_per_s
    if offered >= rate * (1 - TOLERATED) or case.keeps_up:
        return None
    message = f"the source delivers {offered:,.0f} of {rate:,.0f} rows/s"
    return Verdict(Cause.SOURCE, "source", f"{message}, which no deployment of what reads it can change")


def _skew(case: _Case) -> Verdict | None:
    for name, one in case.seen.operators.items():
        if one.busiest >= SATURATED and one.largest_share >= UNEVEN and not case.keeps_up:
            message = f"{case.held_up}: one instance of '{name}' gets {one.largest_share:.1f} times its share of rows"
            remedy = "its keys are uneven, and more instances do not divide one key; choose a finer key"
            return Verdict(Cause.SKEW, name, f"{message}; {remedy}")
    return None


def _too_far(case: _Case) -> Verdict | None:
    loads = case.plan.loads
    held = loads.values("sojourn_s")
    for place, name in enumerate(loads.names):
        one = case.seen.operators.get(name)
        if one is not None:
            held[place] = one.cpu_s + one.wait_s
    floor_s, path = loads.longest_path(held)
    if case.in_time or floor_s <= case.target.latency_s:
        return None
    names = " -> ".join(loads.names[place] for place in path)
    slowest = loads.names[max(path, key=lambda place: held[place])]
    message = f"a row spends {floor_s * 1_000:,.0f} ms in {names} by itself"
    allowed = f"{case.target.latency_s * 1_000:,.0f} ms are allowed"
    return Verdict(
        Cause.TOO_FAR, slowest, f"{message}, and {allowed}: no number of machines helps, make '{slowest}' faster"
    )


def _instance(case: _Case) -> Verdict | None:
    most = case.busiest()
    if most is None or most[1].busiest < SATURATED:
        return None
    name, one = most
    place = case.plan.loads.names.index(name)
    count = int(case.plan.items.count[place])
    instances = f"{counted(count, 'instance')} of '{name}'"
    message = f"{case.held_up}: {instances} {'is' if count == 1 else 'are'} busy all the time"
    return Verdict(Cause.INSTANCE, name, f"{message} at {one.rows_per_s:,.0f} rows/s")


def _machine(case: _Case) -> Verdict | None:
    kinds = {site.name: case.plan.classes[site.vm_class].power for site in case.plan.placement.sites}
    others = {site.name: site.others_cpu for site in case.plan.placement.sites}
    full = {name: (used + others[name]) / kinds[name] for name, used in case.seen.cpu_by_site.items() if name in kinds}
    name = max(full, key=lambda each: full[each], default=None)
    if name is None or full[name] < FULL:
        return None
    site = next(each for each in case.plan.placement.sites if each.name == name)
    cores = case.plan.items.cpu_by_operator(case.plan.counts(site))
    most = case.plan.items.names[int(cores.argmax())]
    return Verdict(
        Cause.MACHINE,
        most,
        f"{case.held_up}: machine {name} has no CPU left ({full[name]:.0%}), most of it for '{most}'",
    )


def _latency(case: _Case) -> Verdict | None:
    if not case.keeps_up:
        return None
    most = case.busiest()
    name = most[0] if most else ""
    return Verdict(Cause.LATENCY, name, f"{case.held_up}; rows wait longest before '{name}'")


RULES: tuple[Callable[[_Case], Verdict | None], ...] = (
    _lost,
    _reached,
    _too_far,
    _source,
    _skew,
    _machine,
    _instance,
    _latency,
)
