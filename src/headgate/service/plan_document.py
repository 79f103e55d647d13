"""A plan as a file: written by ``headgate plan --out``, applied by ``headgate submit --plan``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from headgate.documents.document import to_document
from headgate.errors import InputError, os_reason
from headgate.model.dataflow import Dataflow
from headgate.service.plan import PlannedChanges
from headgate.service.plan_tables import machine_groups
from headgate.tasks.registry import Registry

if TYPE_CHECKING:
    from headgate.service.capacity import Latency, Plan

__all__ = ["PlanDocument", "plan_document", "planned_changes", "read_plan"]


class PlannedCapacity(BaseModel):
    """What one dataflow needs, and what was predicted for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    algorithm: str
    alternates: Mapping[str, str]
    """The alternate of each task that has a choice."""

    cores: Mapping[str, int]
    machines: Sequence[Mapping[str, Any]]
    omega: float
    gamma: float
    cost_per_h: float
    theta: float
    mean_latency_s: float | None = None
    p95_latency_s: float | None = None


class PlanDocument(BaseModel):
    """Dataflows as they would be submitted, and the capacity of those that were planned with rates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int = 1
    dataflows: Sequence[Mapping[str, Any]]
    capacity: Mapping[str, PlannedCapacity] = {}


def plan_document(dataflows: Sequence[Dataflow], plans: Mapping[str, tuple[Plan, Latency]]) -> PlanDocument:
    """The document of dataflows and of plans, with predicted latency, by the name of their dataflow."""
    capacity = {}
    for name, (plan, latency) in plans.items():
        capacity[name] = PlannedCapacity(
            algorithm=plan.planner,
            alternates=dict(plan.deployment.alternates),
            cores=dict(plan.cores),
            machines=machine_groups(plan),
            omega=plan.omega,
            gamma=plan.gamma,
            cost_per_h=plan.cost_per_h,
            theta=plan.theta,
            mean_latency_s=latency.mean_s,
            p95_latency_s=latency.p95_s,
        )
    return PlanDocument(dataflows=[to_document(flow) for flow in dataflows], capacity=capacity)


def read_plan(path: Path) -> PlanDocument:
    """Read a plan; raises :class:`InputError` for a file that ``headgate plan --out`` did not write."""
    try:
        return PlanDocument.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError("BAD_PLAN_FILE", f"cannot read {path}: {os_reason(error)}") from None
    except (ValueError, ValidationError):
        message = f"{path} is not a plan; write one with headgate plan FILE --out {path.name}"
        raise InputError("BAD_PLAN_FILE", message) from None


def planned_changes(document: PlanDocument, registry: Registry) -> PlannedChanges:
    """The alternates of the plan, and as many partitions for each stateful task as it has cores in the plan."""
    alternates, partitions = [], []
    for flow in document.dataflows:
        name = str(flow["name"])
        capacity = document.capacity.get(name)
        if capacity is None:
            continue
        alternates += [(name, task, alternate) for task, alternate in capacity.alternates.items()]
        for task in flow["tasks"]:
            ways = task.get("alternates", [task])
            cores = capacity.cores.get(task["id"], 0)
            if cores and any(way["type"] in registry and registry[way["type"]].stateful for way in ways):
                partitions.append((name, str(task["id"]), cores))
    return PlannedChanges(tuple(alternates), tuple(partitions))
