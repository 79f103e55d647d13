"""The overview: one row for each dataflow and what all of them are doing together, from one look at the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headgate.billing.usage import Customer
from headgate.model.cluster.observation import Observation
from headgate.model.service_level import ServiceLevel
from headgate.model.status import DataflowStatus
from headgate.service.console.bottleneck import Bottleneck, bottleneck
from headgate.service.console.choices import SnapshotChoices
from headgate.service.console.hourly import HourlyCosts, MachinePrice, hourly_costs, users_of_tasks
from headgate.service.console.recent import FlowMoment, Recent
from headgate.service.console.series import buckets
from headgate.sharing.running import RunningSet

__all__ = ["DataflowRow", "Overview", "overview"]

SPARKS = 30
"""Points of a line in the table: the last hour in stretches of two minutes."""


@dataclass(frozen=True, slots=True)
class DataflowRow:
    """A dataflow in the overview; what is not known, or not for who asks, is ``None``."""

    name: str
    owner: str
    state: str
    reason: str
    tasks: int
    shared: int
    in_per_s: float | None
    out_per_s: float | None
    spark: tuple[float | None, ...]
    """Rows out per second in the last hour."""

    waiting: float | None
    waiting_s: float | None
    p50_s: float | None
    p99_s: float | None
    latency_max_s: float | None
    in_time: float | None
    """The share of the known time in which it was as agreed, since it was submitted."""

    budget_left: float | None
    """What is left of the time of this month in which it may be otherwise, as a share; below 0 it is overdrawn."""

    budget_left_s: float | None

    cost_per_h: float | None
    alone_per_h: float | None
    alternates: tuple[str, ...]
    """``task: alternate`` where there is a choice."""

    rows_dead: int
    rows_skipped: int


@dataclass(frozen=True, slots=True)
class Overview:
    """All that runs, at a moment."""

    at: float | None
    """When the last interval ended, in seconds since 1970; nothing was measured before."""

    snapshot: int
    strategy: str
    folder: str
    states: Mapping[str, int]
    """How many dataflows are in each state."""

    tasks_submitted: int
    tasks_running: int
    machines: int
    cores: int
    cores_busy: float | None
    cost_per_h: float
    alone_per_h: float
    """What all dataflows would cost on machines of their own."""

    currency: str
    bottleneck: Bottleneck
    teams: tuple[str, ...]
    dataflows: tuple[DataflowRow, ...]


def overview(
    about: Mapping[str, object],
    running: RunningSet,
    statuses: Iterable[DataflowStatus],
    choices: SnapshotChoices,
    recent: Recent,
    prices: tuple[list[MachinePrice], str],
    may_see_costs: Callable[[str], bool],
) -> Overview:
    """Put together what is known; ``may_see_costs`` says of an owner whether who asks may see its costs."""
    seen, moments = recent.last(), recent.moments()
    flows = list(statuses)
    written = {str(name): one.written for name, one in running.submitted.items()}
    customers = [Customer(flow.name, flow.owner, len(flow.tasks)) for flow in written.values()]
    costs = hourly_costs(users_of_tasks(running, choices.paused), customers, *prices)
    levels = {flow.name: flow.level.level if flow.level else written[flow.name].service_level for flow in flows}
    chosen = _alternates(running, choices)
    rows = [
        _row(
            flow,
            moments.get(flow.name, FlowMoment()),
            recent,
            levels.get(flow.name, ServiceLevel()),
            costs if may_see_costs(flow.owner) else None,
            tuple(chosen.get(flow.name, ())),
        )
        for flow in flows
    ]
    machines, cores, busy = _machines(seen)
    return Overview(
        None if seen is None else seen.ended,
        int(str(about["snapshot"])),
        str(about["strategy"]),
        str(about["folder"]),
        dict(Counter(flow.state for flow in flows)),
        sum(len(flow.tasks) for flow in written.values()),
        len(running.tasks),
        machines,
        cores,
        busy,
        costs.total,
        sum(costs.alone.values()),
        costs.currency,
        bottleneck(recent.newest()),
        tuple(sorted({flow.owner for flow in flows})),
        tuple(rows),
    )


def _row(
    flow: DataflowStatus,
    now: FlowMoment,
    recent: Recent,
    level: ServiceLevel,
    costs: HourlyCosts | None,
    alternates: tuple[str, ...],
) -> DataflowRow:
    agreed = flow.level
    in_time = None if agreed is None else agreed.share
    is_known = agreed is not None and agreed.share is not None and agreed.budget_s > 0
    return DataflowRow(
        flow.name,
        flow.owner,
        flow.state,
        flow.reason,
        flow.tasks,
        flow.shared,
        now.in_per_s,
        now.out_per_s,
        tuple(buckets(recent.flow(flow.name, "out_per_s"), SPARKS)),
        now.waiting,
        now.waiting / now.in_per_s if now.waiting is not None and now.in_per_s else None,
        now.p50_s,
        now.p99_s,
        level.latency_max_s,
        in_time,
        agreed.budget_left_s / agreed.budget_s if is_known and agreed is not None else None,
        agreed.budget_left_s if is_known and agreed is not None else None,
        None if costs is None else costs.paid.get(flow.name, 0.0),
        None if costs is None else costs.alone.get(flow.name),
        alternates,
        flow.rows_dead,
        flow.rows_skipped,
    )


def _alternates(running: RunningSet, choices: SnapshotChoices) -> dict[str, list[str]]:
    """The active alternates of each dataflow, where there is a choice."""
    chosen: dict[str, list[str]] = {}
    for signature, used in running.tasks.items():
        task = used.running.task
        if task.is_dynamic:
            active = choices.alternate(signature, task).name
            for name, own in used.users.items():
                chosen.setdefault(name, []).append(f"{own}: {active}")
    return chosen


def _machines(seen: Observation | None) -> tuple[int, int, float | None]:
    """How many machines there are, their cores, and how many of these are busy."""
    if seen is None:
        return 0, 0, None
    there = [machine for machine in seen.machines if not machine.is_gone]
    known = [machine.busy * machine.cores for machine in there if machine.busy is not None]
    return len(there), sum(machine.cores for machine in there), sum(known) if known else None
