"""A plan as tables: what is shared, everyone's bill, alternates, cores and machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from headgate.errors import counted
from headgate.model.names import TaskId
from headgate.model.table import Table, TableColumn
from headgate.service.plan import Planned, PlannedSubmission
from headgate.sharing.shared_set import Submission

if TYPE_CHECKING:
    from headgate.planning.plan import Answer, Plan
    from headgate.planning.problem import Problem
    from headgate.service.capacity import Latency

__all__ = ["capacity_tables", "machine_groups", "sharing_tables"]

_FLOW, _OWNER, _TASK = (TableColumn(name, name) for name in ("dataflow", "owner", "task"))
_TASKS = (_FLOW, _TASK, TableColumn("sharing", "sharing"), TableColumn("detail", "detail"))
_DATAFLOWS = (
    _FLOW,
    _OWNER,
    *(TableColumn(name, name) for name in ("tasks", "shared", "wider", "new", "taps", "touches", "interrupts")),
)
_BILLS = (
    _FLOW,
    _OWNER,
    *(TableColumn(f"{name}_per_h", name, form=".4f", of=attrgetter(name)) for name in ("before", "after")),
    TableColumn("change_per_h", "change", form="+.4f", of=attrgetter("change")),
    TableColumn("alone_per_h", "alone", form=".4f", of=attrgetter("alone")),
)
_PLANS = (
    TableColumn("algorithm", "algorithm"),
    TableColumn("omega", "Ω", form=".4f"),
    TableColumn("gamma", "Γ", form=".4f"),
    TableColumn("cost_per_h", "cost/h", form=",.2f"),
    TableColumn("theta", "Θ", form=".4f"),
    TableColumn("gap", "gap", form=".4f"),
    TableColumn("cores", "cores"),
    TableColumn("machines", "machines"),
    TableColumn("mean_s", "mean", "s", ".3g"),
    TableColumn("p95_s", "p95", "s", ".3g"),
    TableColumn("took_s", "took", "s", ".2g"),
)
_SYMBOLS = "Ω: relative throughput; Γ: value; Θ: profit; mean, p95: predicted latency; costs in {currency}."
_REASON = TableColumn("reason", "reason")
_ALLOCATION = (
    _TASK,
    TableColumn("alternate", "alternate"),
    TableColumn("cores", "cores"),
    TableColumn("busy", "busy", form=".0%"),
)
_MACHINES = (TableColumn("vm_class", "VM class"), TableColumn("count", "count"), TableColumn("cores", "cores by task"))


def sharing_tables(planned: Planned) -> tuple[Table, ...]:
    """What each task would share, whom each dataflow would touch, and everyone's bill per hour."""
    prices = planned.prices
    workers = counted(prices.workers_per_vm, "worker")
    change = planned.total_after - planned.total_before
    notes = (
        f"Per hour, in {prices.currency}: a machine costs {prices.price_per_h} and holds {workers} of "
        f"{prices.tasks_per_worker} tasks.",
        f"All dataflows: {planned.total_before:.4f} before, {planned.total_after:.4f} after, change {change:+.4f}.",
    )
    return (
        Table("Tasks", _TASKS, tuple(row for each in planned.submissions for row in _task_rows(each))),
        Table("Dataflows", _DATAFLOWS, tuple(map(_dataflow_row, planned.submissions)), _starts(planned)),
        Table.of("Bills", _BILLS, planned.bills, *notes),
    )


def _starts(planned: Planned) -> tuple[str, ...]:
    """From where dataflows read that find their sources running."""
    return tuple(f"{one.dataflow.name}: {text}" for one in planned.submissions if (text := one.start.sentence))


def _dataflow_row(planned: PlannedSubmission) -> dict[str, object]:
    submission, change = planned.submission, planned.submission.change
    names = change.names
    residual = {task for match in submission.wider for task in match.residual}
    return {
        "dataflow": planned.dataflow.name,
        "owner": planned.dataflow.owner,
        "tasks": len(planned.dataflow.tasks),
        "shared": len(submission.exact),
        "wider": len(submission.wider),
        "new": sum(task not in residual for task in change.own_ids),
        "taps": [f"{names[tap.source]} -> {names[tap.target]}" for tap in change.taps],
        "touches": sorted(change.touched),
        "interrupts": sorted(planned.interrupted),
    }


def _task_rows(planned: PlannedSubmission) -> list[dict[str, object]]:
    submission, flow = planned.submission, planned.dataflow
    wider = {match.task: match for match in submission.wider}
    users = {shared.id: shared.named_users() for shared in submission.change.shared}
    residual = {task for match in wider.values() for task in match.residual}
    new = set(submission.change.own_ids) - residual
    rows: list[dict[str, object]] = []
    for task in flow.tasks:
        if task.id in submission.exact:
            sharing, detail = "shared", f"with {users[task.id]}"
        elif task.id in wider:
            sharing, detail = "wider", _residual(submission, wider[task.id].residual)
        elif task.id in users:
            sharing, detail = "wider", f"the same rows are made for {users[task.id]}"
        elif task.id in new:
            sharing, detail = "new", ""
        else:
            sharing, detail = "dropped", "no task reads it any more"
        rows.append({"dataflow": flow.name, "task": task.id, "sharing": sharing, "detail": detail})
    return rows


def _residual(submission: Submission, tasks: tuple[TaskId, ...]) -> str:
    if not tasks:
        return "the same rows are made in another way"
    types = {task.id: task.type for task in submission.dataflow.tasks}
    return f"from a wider stream, by {', then '.join(types[task] for task in tasks)}"


def capacity_tables(
    problem: Problem, answers: Sequence[Answer], best: Plan | None, latency: Mapping[str, Latency]
) -> tuple[Table, ...]:
    """Compare the plans of all algorithms, and list alternates, cores and machines of the best."""
    from headgate.planning.plan import Plan

    rows = [
        _plan_row(each, latency[each.planner]) if isinstance(each, Plan) else _no_plan_row(each) for each in answers
    ]
    failed = any(not isinstance(each, Plan) for each in answers)
    rates = ", ".join(f"{name} {rate:,.6g}/s" for name, rate in problem.rates.items())
    head = f"{problem.dataflow.name} on {problem.cloud.name}, {rates}, relative throughput at least "
    notes = [f"{head}{problem.throughput_min:g}.", _SYMBOLS.format(currency=problem.cloud.currency)]
    busy = latency[best.planner].busy if best is not None else {}
    if best is not None and latency[best.planner].mean_s is None:
        full = ", ".join(name for name, share in busy.items() if share > 1 - 1e-9)
        notes.append(f"Latency has no bound: {full} always busy. Plan for more, with --throughput 1 or a higher rate.")
    plans = Table("Plans", (*_PLANS, _REASON) if failed else _PLANS, tuple(rows), tuple(notes))
    if best is None:
        return (plans,)
    shape = problem.shape
    allocation = tuple(
        {
            "task": str(name),
            "alternate": best.deployment.alternates.get(str(name), ways[0]),
            "cores": best.cores.get(str(name), 0),
            "busy": busy.get(str(name)),
        }
        for name, ways in zip(shape.names, shape.alternates, strict=True)
    )
    return (
        plans,
        Table("Allocation", _ALLOCATION, allocation),
        Table("Machines", _MACHINES, tuple(machine_groups(best)), tuple(_sentences(best))),
    )


def _sentences(plan: Plan) -> list[str]:
    return [f"{sentence[:1].upper()}{sentence[1:].rstrip('.')}." for sentence in plan.explanation]


def _plan_row(plan: Plan, latency: Latency) -> dict[str, object]:
    own = {name: getattr(plan, name) for name in ("omega", "gamma", "cost_per_h", "theta", "gap", "took_s")}
    size = {"cores": sum(plan.cores.values()), "machines": len(plan.deployment.machines)}
    return {"algorithm": plan.planner, **own, **size, "mean_s": latency.mean_s, "p95_s": latency.p95_s}


def _no_plan_row(answer: Any) -> dict[str, object]:
    return {"algorithm": answer.planner, "reason": answer.reason, "took_s": answer.took_s}


def machine_groups(plan: Plan) -> list[dict[str, Any]]:
    """Equal machines as one row: their class, how many, and the cores of each task on one of them."""
    groups: dict[tuple[str, tuple[tuple[str, int], ...]], int] = {}
    for machine in plan.deployment.machines:
        key = (machine.vm_class, tuple(machine.cores.items()))
        groups[key] = groups.get(key, 0) + 1
    return [{"vm_class": kind, "count": count, "cores": dict(cores)} for (kind, cores), count in groups.items()]
