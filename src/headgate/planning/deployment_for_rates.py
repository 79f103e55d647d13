"""A deployment for given rates: enough cores for each task, neighbours on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from headgate.errors import BadValue
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph

__all__ = ["deployment_for_power", "steady_deployment"]


def steady_deployment(
    dataflow: Dataflow,
    cloud: Cloud,
    demand_s: Mapping[str, float],
    headroom: float = 1.0,
    vm_class: str | None = None,
    alternates: Mapping[str, str] | None = None,
) -> Deployment:
    """Give each task the cores for ``headroom`` times its demand, on machines of one class (the largest).

    ``demand_s`` is core-seconds a second on the reference core, by task. The last machine is the smallest that holds
    what is left.
    """
    if not headroom > 0:
        raise BadValue(f"headroom is {headroom:g}", "above 0")
    kind = cloud.largest if vm_class is None else cloud.vm_class(vm_class)
    cores = {task: ceil(headroom * work / kind.core_power - 1e-9) for task, work in demand_s.items()}
    return Deployment(
        deployment_for_power(dataflow, {task: n for task, n in cores.items() if n > 0}, kind, cloud), alternates or {}
    )


def deployment_for_power(
    dataflow: Dataflow, cores: Mapping[str, int], kind: VmClass, cloud: Cloud
) -> tuple[Machine, ...]:
    """Assign cores to machines in depth-first order from the sources, so that neighbours meet (DYN, Alg. 1)."""
    machines: list[dict[str, int]] = []
    free = 0
    for task in Graph(dataflow).depth_first():
        left = cores.get(task, 0)
        if left and free:
            step = min(left, free)
            machines[-1][task] = step
            left, free = left - step, free - step
        whole, rest = divmod(left, kind.cores)
        machines += [{task: kind.cores} for _ in range(whole)]
        if rest:
            machines.append({task: rest})
        if left:
            free = kind.cores - rest if rest else 0
    bins = [Machine(kind.name, each) for each in machines]
    if bins:
        # A smaller class for the last machine, if its cores are as fast.
        used = sum(machines[-1].values())
        smaller = [each for each in cloud.classes if each.cores >= used and each.core_power >= kind.core_power]
        best = min(smaller, key=lambda each: (each.price_per_h, each.cores), default=kind)
        bins[-1] = Machine(best.name, machines[-1])
    return tuple(bins)
