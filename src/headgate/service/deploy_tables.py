"""A deployment as tables: iterations, instances, machines, streams."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from headgate.adaptation.deploying.loop import Attempt
from headgate.errors import counted
from headgate.model.table import Table, TableColumn
from headgate.planning.placing.deployment_plan import DeploymentPlan, DeployTarget
from headgate.planning.placing.parallelism import Bound
from headgate.planning.placing.placement import Site

__all__ = ["attempt_line", "iterations_table", "plan_tables"]

_TASK = TableColumn("task", "task")
_INSTANCES = (
    _TASK,
    TableColumn("rows_per_s", "rows", "1/s", ",.0f"),
    TableColumn("kind", "kind"),
    *(TableColumn(f"asked_{bound.name.lower()}", f"by {bound}", form=".2f") for bound in Bound),
    TableColumn("bound", "decided by"),
    TableColumn("instances", "instances"),
)
_MACHINES = (
    TableColumn("machine", "machine"),
    TableColumn("count", "count"),
    TableColumn("vm_class", "VM class"),
    TableColumn("instances", "instances on each"),
    TableColumn("cpu", "CPU", "cores", ".2f"),
    TableColumn("busy", "predicted", form=".0%"),
    TableColumn("measured", "measured", form=".0%"),
    TableColumn("memory_mib", "memory", "MiB", ",.0f"),
)
_STREAMS = (
    TableColumn("stream", "stream"),
    TableColumn("rows_per_s", "rows", "1/s", ",.0f"),
    TableColumn("across_per_s", "between machines", "1/s", ",.0f"),
    TableColumn("share", "share", form=".0%"),
)
_ITERATIONS = (
    TableColumn("iteration", "iteration"),
    TableColumn("machines", "machines"),
    TableColumn("instances", "instances"),
    TableColumn("price_per_h", "price/h", form=".2f"),
    TableColumn("predicted_per_s", "predicted", "rows/s", ",.0f"),
    TableColumn("throughput_per_s", "measured", "rows/s", ",.0f"),
    TableColumn("latency_ms", "latency", "ms", ",.0f"),
    TableColumn("growth_per_s", "queues grow", "rows/s", ",.0f"),
    TableColumn("verdict", "verdict"),
)


def iterations_table(attempts: Sequence[Attempt], *notes: str) -> Table:
    """A row for each deployment that was measured."""
    rows = tuple(
        {
            "iteration": number,
            "machines": each.plan.placement.machines,
            "instances": int(each.plan.items.count.sum()),
            "price_per_h": float(each.plan.placement.price_per_h),
            "predicted_per_s": each.plan.sustained_per_s,
            "throughput_per_s": each.seen.mean_throughput_per_s,
            "latency_ms": each.seen.mean_latency_s * 1_000,
            "growth_per_s": each.seen.growth_per_s,
            "verdict": each.verdict.cause.value,
        }
        for number, each in enumerate(attempts, start=1)
    )
    sentences = tuple(f"{number}: {each.verdict.sentence}." for number, each in enumerate(attempts, start=1))
    return Table("Iterations", _ITERATIONS, rows, (*sentences, *notes))


def attempt_line(number: int, each: Attempt) -> str:
    """What an iteration did, in a line."""
    return f"iteration {number}: {each.plan.placement.machines} machines, {each.verdict.sentence}"


def plan_tables(plan: DeploymentPlan, target: DeployTarget, measured: Attempt | None = None) -> list[Table]:
    """Instances with the bound that decides, machines, and streams between them."""
    return [_instances(plan), _machines(plan, target, measured), _streams(plan)]


def _instances(plan: DeploymentPlan) -> Table:
    rates = plan.loads.in_per_s.tolist()
    rows = tuple(
        {
            "task": each.task,
            "rows_per_s": rate,
            "kind": f"{each.kind}-bound",
            **{f"asked_{bound.name.lower()}": asked for bound, asked in each.asked.items()},
            "bound": each.bound.value,
            "instances": each.instances,
        }
        for each, rate in zip(plan.parallelism, rates, strict=True)
    )
    note = "Each bound asks for so many instances; the largest decides."
    return Table("Instances", _INSTANCES, rows, (note,))


def _machines(plan: DeploymentPlan, target: DeployTarget, measured: Attempt | None) -> Table:
    alike: dict[object, list[Site]] = {}
    for site in plan.placement.sites:
        key = site.vm_class, tuple(site.instances.items()), round(site.others_cpu, 6)
        alike.setdefault(key, []).append(site)
    rows = []
    for sites in alike.values():
        first, power = sites[0], plan.classes[sites[0].vm_class].power
        used = [] if measured is None else [measured.seen.cpu_by_site.get(site.name) for site in sites]
        known = [each for each in used if each is not None]
        rows.append(
            {
                "machine": first.name if len(sites) == 1 else f"{first.name} to {sites[-1].name}",
                "count": len(sites),
                "vm_class": first.vm_class,
                "instances": ", ".join(f"{name} {count}" for name, count in first.instances.items()),
                "cpu": first.cpu,
                "busy": plan.busy(first),
                "measured": (statistics.mean(known) + first.others_cpu) / power if known else None,
                "memory_mib": first.memory_bytes / 2**20,
            }
        )
    placement = plan.placement
    notes = [
        f"{placement.packer}: {counted(placement.machines, 'machine')} for {placement.price_per_h} an hour; "
        f"at {target.rate_per_s:,.0f} rows/s the bottleneck is {plan.bottleneck}.",
        f"Predicted: up to {plan.sustained_per_s:,.0f} rows/s; {plan.latency_s * 1_000:,.0f} ms at the target.",
    ]
    if placement.bound is not None:
        price = float(placement.price_per_h)
        proven = (
            "no placement is cheaper" if placement.bound >= price - 1e-6 else f"none is below {placement.bound:.2f}"
        )
        notes.append(f"Proven: {proven}.")
    return Table("Machines", _MACHINES, tuple(rows), tuple(notes))


def _streams(plan: DeploymentPlan) -> Table:
    loads, count = plan.loads, plan.items.count
    share = np.array([plan.counts(site) / count for site in plan.placement.sites])
    rows = []
    for a, b, rate in zip(loads.source.tolist(), loads.target.tolist(), loads.stream_per_s.tolist(), strict=True):
        across = 1.0 - float((share[:, a] * share[:, b]).sum())
        name = f"{loads.names[a]} -> {loads.names[b]}"
        rows.append({"stream": name, "rows_per_s": rate, "across_per_s": rate * across, "share": across})
    total = float(loads.stream_per_s.sum())
    note = f"{plan.placement.across_per_s:,.0f} of {total:,.0f} rows/s pass between machines."
    return Table("Streams", _STREAMS, tuple(rows), (note,))
