"""What an engine's observations say of a deployment: which operators it fuses, and the readings of an iteration."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from headgate.adaptation.deploying.readings import OperatorReading, Readings
from headgate.machines.provider import LOOPBACK_MBIT_PER_S
from headgate.model.cluster.machine_observations import MachineRow
from headgate.model.cluster.observation import FragmentObservation, Observation
from headgate.model.cluster.vm_class import PER_SECOND, Cloud, VmClass
from headgate.model.names import Signature, TaskId
from headgate.planning.placing.deployment_plan import DeploymentPlan

__all__ = ["cloud_of_engine", "epoch_s", "fused_groups", "is_settled", "readings_of"]

STEADY = 0.15
"""Throughput is stable when the readings of the second half are, on the mean, within this share of the first half's."""

CATCHING_UP = 0.05
"""While what waits shrinks by more than this share of what comes, readings say nothing of the target."""

LEAST_OWN = 0.3
"""At least this share of what an instance used is taken for its rows, and not for its micro-batches."""


def cloud_of_engine(facts: Mapping[str, Any], observations: Sequence[Observation]) -> Cloud:
    """The classes that an engine can acquire; without a provider, the machine that it runs on.

    Cores of a class of which machines run are as fast as they were measured to be.
    """
    machines = list(observations[-1].machines) if observations else []
    if facts["classes"]:
        classes = tuple(
            VmClass(
                each["name"],
                each["cores"],
                _speed([row for row in machines if row.vm_class == each["name"]]) or each["core_power"],
                LOOPBACK_MBIT_PER_S,
                Decimal(each["price_per_h"]),
                memory_bytes=each["memory_bytes"],
            )
            for each in facts["classes"]
        )
        return Cloud("engine", classes, PER_SECOND, latency_s=0.0)
    cores = sum(each.cores for each in machines) or sum(each["cores"] for each in facts["executors"]) or 1
    price = next((each.price_per_h for each in machines if each.price_per_h), Decimal("0.10"))
    here = VmClass("here", cores, _speed(machines) or 1.0, LOOPBACK_MBIT_PER_S, price)
    return Cloud("engine", (here,), PER_SECOND, latency_s=0.0)


def _speed(machines: Sequence[MachineRow]) -> float | None:
    speeds = [row.speed for row in machines if row.speed and not row.is_gone]
    return statistics.mean(speeds) if speeds else None


def fused_groups(last: Observation, signatures: Mapping[TaskId, Signature]) -> dict[str, tuple[str, ...]]:
    """The tasks of a dataflow that the engine runs as one, by the one where their rows come in."""
    named = {signature: str(name) for name, signature in signatures.items()}
    groups = {}
    for fragment in last.fragments:
        members = tuple(dict.fromkeys(named[task] for task in fragment.tasks if task in named))
        if members and fragment.tasks[0] in named:
            groups[members[0]] = members
    return groups


def epoch_s(observations: Sequence[Observation]) -> float | None:
    """Seconds from a micro-batch to the next, of the fragment that has most; none before there was one."""
    batches: dict[str, int] = {}
    for each in observations:
        for fragment in each.fragments:
            batches[fragment.id] = batches.get(fragment.id, 0) + fragment.batches
    most = max(batches.values(), default=0)
    return sum(each.seconds for each in observations) / most if most else None


def is_settled(seen: Sequence[Observation], mine: set[Signature]) -> bool:
    """Whether throughput is steady, and nothing is left of what has waited before."""
    taken = _taken(seen, mine)
    first, second = taken[: len(taken) // 2], taken[len(taken) // 2 :]
    if not any(taken) or abs(statistics.mean(second) - statistics.mean(first)) > STEADY * statistics.mean(taken):
        return False
    return _growth(seen, mine) >= -CATCHING_UP * statistics.mean(_arrived(seen, mine))


def readings_of(
    plan: DeploymentPlan,
    seen: Sequence[Observation],
    signatures: Mapping[TaskId, Signature],
    sites: Mapping[str, str],
) -> Readings:
    """The readings of an iteration; ``sites`` are the machines that stand for the plan's.

    Rows are counted when their micro-batch ends, so what a few seconds have finished jumps. What came, less that by
    which what waits grows, is the same on the mean and does not.
    """
    mine = set(signatures.values())
    arrived, growth = _arrived(seen, mine), _growth(seen, mine)
    sinks = [[one.sojourn.mean_s for one in each.sinks if one.task in mine and one.sojourn] for each in seen]
    latency = [max(each) for each in sinks if each] or [float("inf")]
    machines = {row.name: row for row in seen[-1].machines}
    lost = tuple(site for site, name in sites.items() if name not in machines or machines[name].is_gone)
    return Readings(
        tuple(max(rate - growth, 0.0) for rate in arrived),
        tuple(latency),
        statistics.mean(arrived),
        growth,
        _operators(plan, seen, signatures),
        _cpu_by_site(plan, seen, sites),
        lost,
    )


def _taken(seen: Sequence[Observation], mine: set[Signature]) -> list[float]:
    """Rows per second that were taken from the dataflow's sources, and finished."""
    return [sum(one.rows_taken for one in each.sources if one.task in mine) / each.seconds for each in seen]


def _arrived(seen: Sequence[Observation], mine: set[Signature]) -> list[float]:
    def came(each: Observation) -> float:
        sources = [one for one in each.sources if one.task in mine]
        return sum(one.rows_taken if one.rows_arrived is None else one.rows_arrived for one in sources)

    return [came(each) / each.seconds for each in seen]


def _growth(seen: Sequence[Observation], mine: set[Signature]) -> float:
    """Rows per second by which what waits grows: the slope of a line through all readings."""
    waiting = [sum(one.rows_waiting or 0.0 for one in each.sources if one.task in mine) for each in seen]
    if len(seen) < 2:
        return 0.0
    return float(np.polyfit([each.ended - seen[0].ended for each in seen], waiting, 1)[0])


def _operators(
    plan: DeploymentPlan, seen: Sequence[Observation], signatures: Mapping[TaskId, Signature]
) -> dict[str, OperatorReading]:
    """What rows held cores for, as cores of the plan's classes: machines are as full as the plan says then, whatever
    else the computer does that they share. An instance whose micro-batches follow one another is busy all the time."""
    count = dict(zip(plan.items.names, plan.items.count.tolist(), strict=True))
    profiles = {each.task: each for each in plan.loads.profiles}
    seconds = sum(each.seconds for each in seen)
    power = statistics.mean(plan.classes[site.vm_class].core_power for site in plan.placement.sites)
    readings = {}
    for name in plan.items.names:
        root = signatures[TaskId(name)]
        known = [(each, one) for each in seen for one in each.fragments if one.tasks and one.tasks[0] == root]
        fragments = [one for _, one in known]
        rows = sum(one.rows_in for one in fragments)
        held_s = sum((one.work_s or 0.0) / (each.machines.mean_speed() or 1.0) for each, one in known)
        if not rows or not held_s:
            continue
        work_s = held_s * power
        own_s = max(work_s - _fixed_s(fragments, profiles[name].batch_s.value), LEAST_OWN * work_s)
        in_batches = sum(one.batch_s for one in fragments) / seconds
        busy = min(held_s / (seconds * count[name]), 1.0)
        busiest = min(max(busy, in_batches), 1.0)
        readings[name] = OperatorReading(rows / seconds, own_s / rows, 0.0, busiest, busy, 0.0)
    return readings


def _fixed_s(fragments: Sequence[FragmentObservation], batch_s: float) -> float:
    """What micro-batches cost without rows."""
    return batch_s * sum(one.batches * (one.parts or 1) for one in fragments)


def _cpu_by_site(plan: DeploymentPlan, seen: Sequence[Observation], sites: Mapping[str, str]) -> dict[str, float]:
    """Reference cores that the machine of each site used, on the mean."""
    kinds = {site.name: plan.classes[site.vm_class] for site in plan.placement.sites}
    used = {}
    for site, name in sites.items():
        rows = [row for each in seen for row in each.machines if row.name == name and row.busy is not None]
        if rows:
            used[site] = statistics.mean(row.busy or 0.0 for row in rows) * kinds[site].power
    return used
