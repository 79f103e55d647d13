"""A deployment as a document: for programs, and as the machines with room of the next one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from headgate.adaptation.deploying.loop import Attempt, Outcome
from headgate.errors import InputError, os_reason
from headgate.planning.placing.deployment_plan import DeploymentPlan, DeployTarget
from headgate.planning.placing.placement import Site
from headgate.service.deploy_tables import iterations_table, plan_tables

__all__ = ["deployment_document", "document_text", "read_sites"]


class _SiteEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    vm_class: str
    instances: Mapping[str, int] = Field(default_factory=dict)
    cpu: float = Field(0.0, ge=0, allow_inf_nan=False)
    memory_bytes: float = Field(0.0, ge=0, allow_inf_nan=False)
    others_cpu: float = Field(0.0, ge=0, allow_inf_nan=False)
    others_memory_bytes: float = Field(0.0, ge=0, allow_inf_nan=False)


_SITES = TypeAdapter(list[_SiteEntry])


def read_sites(path: Path) -> tuple[Site, ...]:
    """The machines of a deployment that was written with ``--out``, with what it uses of them as used by others."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        entries = _SITES.validate_python(content["sites"])
    except OSError as error:
        raise InputError("UNREADABLE_FILE", f"cannot read {path}: {os_reason(error)}") from None
    except (ValueError, KeyError, TypeError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "there are no sites in it"
        message = f"{path} is no deployment ({reason})"
        raise InputError("BAD_DEPLOYMENT", f"{message}; write one with headgate deploy --out") from None
    names = [one.name for one in entries]
    if len(set(names)) < len(names):
        raise InputError("BAD_DEPLOYMENT", f"{path} has two machines of one name")
    return tuple(
        Site(
            one.name,
            one.vm_class,
            {},
            others_cpu=one.cpu + one.others_cpu,
            others_memory_bytes=one.memory_bytes + one.others_memory_bytes,
        )
        for one in entries
    )


def document_text(document: Mapping[str, Any]) -> str:
    """The text of the file."""
    return json.dumps(document, indent=2) + "\n"


def deployment_document(
    plan: DeploymentPlan | None, target: DeployTarget, attempts: Sequence[Attempt], outcome: Outcome | None
) -> dict[str, Any]:
    """Everything, for programs."""
    measured = next((each for each in reversed(attempts) if each.plan is plan), None)
    tables = [] if plan is None else plan_tables(plan, target, measured)
    return {
        "target": {
            "rates_per_s": dict(target.rates),
            "latency_s": target.latency_s,
            "budget_per_h": None if target.budget_per_h is None else float(target.budget_per_h),
        },
        "reached": None if outcome is None else outcome.reached,
        "stop": None if outcome is None else outcome.stop.value,
        "sentence": None if outcome is None else outcome.sentence,
        "iterations": [dict(row) for row in iterations_table(attempts).rows],
        **({} if plan is None else _plan_facts(plan)),
        **{table.title.lower(): [dict(row) for row in table.rows] for table in tables},
    }


def _plan_facts(plan: DeploymentPlan) -> dict[str, Any]:
    return {
        "packer": plan.placement.packer,
        "price_per_h": float(plan.placement.price_per_h),
        "bound_per_h": plan.placement.bound,
        "predicted_per_s": plan.sustained_per_s,
        "predicted_latency_s": plan.latency_s,
        "bottleneck": plan.bottleneck,
        "planning_s": plan.took_s,
        "sites": [
            {
                "name": site.name,
                "vm_class": site.vm_class,
                "instances": dict(site.instances),
                "cpu": site.cpu,
                "memory_bytes": site.memory_bytes,
                "others_cpu": site.others_cpu,
                "others_memory_bytes": site.others_memory_bytes,
            }
            for site in plan.placement.sites
        ],
    }
