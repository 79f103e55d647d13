"""From profiles and a target to instances on machines, with what they are predicted to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np

from headgate.errors import BadValue, Infeasible
from headgate.model.arrays import Floats, Ints
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.planning.placing.items import InstanceItems
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.packers import make_packer
from headgate.planning.placing.parallelism import InstanceLimits, Parallelism, parallelism_of
from headgate.planning.placing.placement import PackingProblem, Placement, Site
from headgate.planning.placing.profiles import OperatorProfile

__all__ = ["DeployOptions", "DeployTarget", "DeploymentPlan", "Loader", "plan_deployment"]

Loader = Callable[[Mapping[str, OperatorProfile]], OperatorLoads]
"""The loads of a dataflow at the target's rates, from profiles."""


@dataclass(frozen=True, slots=True)
class DeployTarget:
    """Rows per second of every source, within a latency, for at most so much an hour."""

    rates: Mapping[str, float]
    latency_s: float
    budget_per_h: Decimal | None = None
    machines_max: int | None = None

    def __post_init__(self) -> None:
        if not self.latency_s > 0:
            raise BadValue(f"the latency is {self.latency_s:g} s", "seconds above 0")

    @property
    def rate_per_s(self) -> float:
        return sum(self.rates.values())


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """How instances are counted and packed."""

    limits: InstanceLimits = field(default_factory=InstanceLimits)
    packer: str = "first-fit"
    saving_weight: float = 1.0
    trigger_s: float = 0.0
    """Seconds between micro-batches; 0 for rows that flow one by one."""

    time_limit_s: float = 60.0
    there: tuple[Site, ...] = ()
    """Machines with room."""

    grains: tuple[float, ...] = (1.0, 0.9, 0.8, 0.65, 0.5)
    """Of these sizes of instances the one with the cheapest plan is taken, of equal ones the first. The paper has 1.0
    only: the fewest instances, which leaves much of a machine empty where two of them just do not fit on it."""

    instances: Mapping[str, int] = field(default_factory=dict)
    """Instances that are given rather than computed, by operator."""


@dataclass(frozen=True, slots=True, eq=False)
class DeploymentPlan:
    """Instances on machines, and what is predicted of them."""

    loads: OperatorLoads
    parallelism: tuple[Parallelism, ...]
    items: InstanceItems
    placement: Placement
    classes: Mapping[str, VmClass]
    sustained_per_s: float
    """Rows per second of all sources at which the first instance or machine is busy all the time."""

    latency_s: float
    bottleneck: str
    """What is busiest at the target, as a phrase."""

    trigger_s: float = 0.0
    took_s: float = 0.0

    @property
    def shape(self) -> tuple[object, ...]:
        """What two equal plans have in common."""
        return tuple((site.vm_class, tuple(sorted(site.instances.items()))) for site in self.placement.sites)

    def counts(self, site: Site) -> Ints:
        return np.array([site.instances.get(name, 0) for name in self.items.names], dtype=np.int64)

    def busy(self, site: Site) -> float:
        """The predicted share of a machine's CPU that is used, by others too."""
        return (site.cpu + site.others_cpu) / self.classes[site.vm_class].power


def plan_deployment(
    load: Loader, profiles: Mapping[str, OperatorProfile], target: DeployTarget, cloud: Cloud, options: DeployOptions
) -> DeploymentPlan:
    """Count instances, pack them, predict. Raises :class:`Infeasible` where the target cannot be planned for."""
    began = time.perf_counter()
    loads, plans, refused = load(profiles), [], []
    for grain in options.grains:
        try:
            plans.append(_of_grain(loads, grain, target, cloud, options))
        except Infeasible as error:
            refused.append(error)
    if not plans:
        raise refused[0]
    cheapest = min(plans, key=lambda each: (each.placement.price_per_h, each.placement.machines))
    return _predicted(cheapest, target, cloud, options, time.perf_counter() - began)


def _of_grain(
    loads: OperatorLoads, grain: float, target: DeployTarget, cloud: Cloud, options: DeployOptions
) -> DeploymentPlan:
    limits = replace(options.limits, grain=grain)
    parallelism = tuple(_given(each, options) for each in parallelism_of(loads, cloud.classes, limits))
    items = InstanceItems.of(loads, parallelism, options.trigger_s)
    problem = PackingProblem(items, cloud.classes, limits.fill, options.there, target.machines_max)
    packer = make_packer(options.packer, options.time_limit_s, options.saving_weight)
    placement = packer.place(problem, loads)
    classes = {each.name: each for each in cloud.classes}
    return DeploymentPlan(loads, parallelism, items, placement, classes, 0.0, 0.0, "")


def _given(each: Parallelism, options: DeployOptions) -> Parallelism:
    count = options.instances.get(each.task)
    if count is None:
        return each
    if count < 1:
        raise BadValue(f"'{each.task}' is given {count} instances", "at least 1")
    return Parallelism(each.task, count, each.bound, each.kind, each.asked)


def _predicted(
    plan: DeploymentPlan, target: DeployTarget, cloud: Cloud, options: DeployOptions, took_s: float
) -> DeploymentPlan:
    held = held_s(plan.loads, cloud)
    on_instance = plan.loads.in_per_s * held / plan.items.count
    machines = [plan.busy(site) for site in plan.placement.sites]
    crowded = np.zeros(len(held))
    for site, busy in zip(plan.placement.sites, machines, strict=True):
        crowded = np.maximum(crowded, np.where(plan.counts(site) > 0, busy, 0.0))
    busiest = max([*machines, float(on_instance.max())])
    latency_s, _ = plan.loads.longest_path(
        held / np.maximum(1 - np.minimum(np.maximum(on_instance, crowded), 1.0), 1e-3), cloud.latency_s
    )
    return DeploymentPlan(
        plan.loads,
        plan.parallelism,
        plan.items,
        plan.placement,
        plan.classes,
        target.rate_per_s / max(busiest, 1e-12),
        latency_s + options.trigger_s / 2,
        _bottleneck(plan, on_instance, machines),
        options.trigger_s,
        took_s,
    )


def held_s(loads: OperatorLoads, cloud: Cloud) -> Floats:
    """Seconds for which a row holds an instance, on the slowest class: work takes longer there, waiting does not."""
    power = min(each.core_power for each in cloud.classes)
    cpu, sojourn = loads.values("cpu_s"), loads.values("sojourn_s")
    held: Floats = cpu / power + np.maximum(sojourn - cpu, 0.0)
    return held


def _bottleneck(plan: DeploymentPlan, on_instance: Floats, machines: list[float]) -> str:
    place = int(np.argmax(on_instance))
    if not machines:
        raise Infeasible("NO_MACHINES", "there is nothing to deploy")
    fullest = int(np.argmax(machines))
    if on_instance[place] >= machines[fullest]:
        name, bound = plan.items.names[place], plan.parallelism[place].bound
        return f"instances of '{name}' ({bound}-bound), {on_instance[place]:.0%} busy"
    site = plan.placement.sites[fullest]
    most = int(np.argmax(plan.items.cpu_by_operator(plan.counts(site))))
    return f"CPU of machine {site.name}, {machines[fullest]:.0%} used, most by '{plan.items.names[most]}'"
