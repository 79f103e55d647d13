"""How well dataflows did in an interval: relative throughput, value, cost, profit, latency. Pure.

The same figures for what runs, what is simulated and what is replayed: all of them come from an
:class:`~headgate.model.cluster.observation.Observation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headgate.adaptation.achievable import Throughput, throughput
from headgate.model.cluster.machine_observations import MachineRow
from headgate.model.cluster.observation import (
    DataflowObservation,
    Figures,
    Observation,
    SinkObservation,
    Sojourn,
    TaskObservation,
)
from headgate.model.names import Signature
from headgate.model.service_level import ServiceLevel
from headgate.planning.objective import BreakEven

__all__ = ["cost_per_h", "evaluated", "figures_of", "machine_cost_per_h", "value_of"]

Users = tuple[str, ...]


def evaluated(seen: Observation) -> Observation:
    """The observation with the figures of each dataflow, and of all of them together."""
    figures, together = figures_of(seen)
    flows = tuple(replace(flow, figures=figures[flow.name]) for flow in seen.dataflows)
    return replace(seen, dataflows=flows, together=together)


def figures_of(seen: Observation) -> tuple[dict[str, Figures], Figures]:
    """The figures of each dataflow by its name, and those of all together."""
    rates = throughput(seen)
    figures = {flow.name: _of_dataflow(seen, flow, rates[flow.name]) for flow in seen.dataflows}
    return figures, _together(seen, figures)


def _of_dataflow(seen: Observation, flow: DataflowObservation, rates: Throughput) -> Figures:
    if flow.paused:
        cost, no_cost = cost_per_h(seen, flow.name)
        return Figures(None, None, None, cost, None, None, None, tuple(filter(None, ("it is paused", no_cost))))
    sojourn = _joined(sink for sink in seen.sinks if flow.name in sink.dataflows)
    gamma = value_of(seen, flow)
    cost, no_cost = cost_per_h(seen, flow.name)
    theta, no_profit = _profit(flow, gamma, cost)
    within = _within(flow.level, rates.omega, sojourn)
    unknown = tuple(filter(None, (rates.unknown, rates.kept_up_unknown, no_cost, no_profit)))
    return Figures(rates.omega, rates.kept_up, gamma, cost, theta, sojourn, within, unknown)


def value_of(seen: Observation, flow: DataflowObservation) -> float | None:
    r"""Value of a dataflow: the mean of its tasks' active alternates' relative values.

    .. math:: \Gamma = \frac{1}{|P|} \sum_{i \in P} \gamma_i

    A sink has one alternate, and what sharing has put between its tasks is not its own.

    Reference: Kumbhare et al., DYN, Eq. 3.
    """
    tasks = [task for task in seen.tasks_and_sinks if flow.name in task.dataflows]
    count = flow.tasks or len(tasks)
    return 1.0 - sum(1.0 - task.value for task in tasks if isinstance(task, TaskObservation)) / count if count else None


def cost_per_h(seen: Observation, dataflow: str) -> tuple[float | None, str]:
    r"""What a dataflow pays for machines in an hour, and why that is not known.

    A machine is split equally over the tasks that share its cores, a task over the dataflows that use it:

    .. math:: \mu_d = \mu \cdot \frac{1}{|T|} \sum_{t \in T: d \in D(t)} \frac{1}{|D(t)|}

    It is what the bill will say (:mod:`headgate.billing.lifecycle`), where time on paid machines is all used.

    Reference: Chaturvedi et al., SHARE, section 6, where a pool is one worker.
    """
    whole, unknown = machine_cost_per_h(seen)
    users = _users(seen)
    if whole is None or not users:
        return (None, unknown) if whole is None else (0.0, "")
    mine = sum(1 / len(each) for each in users.values() if dataflow in each)
    return whole * mine / len(users), ""


def machine_cost_per_h(seen: Observation) -> tuple[float | None, str]:
    """What the machines cost in an hour, as long as they were paid for in the interval; and why it is not known."""
    total = 0.0
    for machine in seen.machines:
        if machine.price_per_h is None:
            return None, f"cost: machine '{machine.name}' has no known price"
        total += float(machine.price_per_h) * _paid_s(machine, seen) / seen.seconds
    return total, ""


def _paid_s(machine: MachineRow, seen: Observation) -> float:
    began = seen.ended - seen.seconds
    since = began if machine.asked is None else max(machine.asked, began)
    until = seen.ended if machine.gone is None else min(machine.gone, seen.ended)
    return max(until - since, 0.0)


def _users(seen: Observation) -> dict[Signature, Users]:
    return {task.task: task.dataflows for task in seen.tasks_and_sinks if task.dataflows}


def _profit(flow: DataflowObservation, gamma: float | None, cost: float | None) -> tuple[float | None, str]:
    best, worst = flow.level.break_even_at_best_per_h, flow.level.break_even_at_worst_per_h
    if best is None or worst is None:
        return None, "profit: the service level names no break-even costs"
    if gamma is None or cost is None:
        return None, "profit: value or cost is not known"
    return BreakEven(1.0, flow.value_min, float(best), float(worst)).profit(gamma, cost), ""


def _joined(sinks: Iterable[SinkObservation]) -> Sojourn | None:
    """Over the rows of several sinks: the mean, and the longest of each percentile."""
    known = [(sink.rows, sink.sojourn) for sink in sinks if sink.sojourn is not None and sink.rows]
    rows = sum(count for count, _ in known)
    if not rows:
        return None
    mean_s = sum(count * sojourn.mean_s for count, sojourn in known) / rows
    longest = (max(getattr(sojourn, name) for _, sojourn in known) for name in ("p50_s", "p95_s", "p99_s"))
    return Sojourn(mean_s, *longest)


def _within(level: ServiceLevel, omega: float | None, sojourn: Sojourn | None) -> bool | None:
    """Whether throughput and latency are as agreed; one that is not decides it, whatever is unknown.

    Where no row came to a sink, none came late.
    """
    late = level.latency_max_s is not None and sojourn is not None and sojourn.mean_s > level.latency_max_s
    if late or (omega is not None and omega < level.throughput_band[0]):
        return False
    return None if omega is None else True


def _together(seen: Observation, figures: Mapping[str, Figures]) -> Figures:
    """Means of throughput and value over dataflows, sums of cost and profit, and whether all are as agreed."""
    running = [figures[flow.name] for flow in seen.dataflows if not flow.paused]
    cost, no_cost = machine_cost_per_h(seen)
    profits = [each.theta for each in running if each.theta is not None]
    taken, came = (_sum(getattr(part, name) for part in seen.fragments) for name in ("rows_in", "rows_arrived"))
    reasons = dict.fromkeys(reason for each in running for reason in each.unknown if not reason.startswith("profit"))
    return Figures(
        _mean([each.omega for each in running]),
        taken / came if taken is not None and came else None,
        _mean([each.gamma for each in running]),
        cost,
        sum(profits) if profits else None,
        _joined(seen.sinks),
        _all(each.within for each in running) if running else None,
        tuple(dict.fromkeys([*reasons, *((no_cost,) if no_cost else ())])),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _mean(values: Sequence[float | None]) -> float | None:
    total = _sum(values)
    return None if total is None or not values else total / len(values)


def _all(values: Iterable[bool | None]) -> bool | None:
    known = set(values)
    return False if False in known else None if None in known else True
