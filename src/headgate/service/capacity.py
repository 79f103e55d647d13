"""Plan a dataflow's alternates, cores and machines: predicted throughput, latency, cost and profit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import BadValue, Infeasible, InputError
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.planning.known_figures import AlternateFigures, costs_of, with_best_alternates
from headgate.planning.objective import BreakEven
from headgate.planning.plan import Answer, NoPlan, Plan, better
from headgate.planning.planners import make_planner, plan_with
from headgate.planning.problem import Problem
from headgate.service.simulate import cloud_of, rates_of

if TYPE_CHECKING:
    from headgate.queueing.network import Operator, Route

__all__ = [
    "CapacityRequest",
    "Latency",
    "Plan",
    "answers_of",
    "best_plan",
    "latencies",
    "plans_picture",
    "predicted_latency",
    "problem_of",
    "requests_by_flow",
]


NO_WORK_S = 1e-9
"""Seconds that a task without cost is taken to need for a message."""

SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class CapacityRequest:
    """Rates, machines and limits of a plan, as they were written."""

    rates: tuple[str, ...]
    catalogue: str = "ec2-2013"
    peak: bool = False
    throughput_min: float | None = None
    budget_per_h: str | None = None
    break_even: str | None = None
    cores_max: int | None = None
    message_bytes: float = 100.0


def requests_by_flow(request: CapacityRequest, flows: Sequence[Dataflow]) -> list[CapacityRequest]:
    """The request for each dataflow: of several, each has the rates of its own sources and those for all sources."""
    if len(flows) == 1:
        return [request]
    requests = []
    for flow in flows:
        others = {str(name) for other in flows for name in Graph(other).sources()} - set(
            map(str, Graph(flow).sources())
        )
        own = tuple(text for text in request.rates if text.partition("=")[0].strip() not in others)
        requests.append(replace(request, rates=own))
    return requests


def problem_of(
    request: CapacityRequest, dataflow: Dataflow, folder: Path, figures: Sequence[AlternateFigures] = ()
) -> Problem:
    """Check the request for a dataflow; ``folder`` is where relative paths of rates and catalogues begin.

    ``figures`` come before what the dataflow says. Without break-even costs every task keeps its best alternate.
    """
    sources = [str(name) for name in Graph(dataflow).sources()]
    given = rates_of(request.rates, sources, folder)
    rates = {name: rate.peak_per_s if request.peak else rate.mean_per_s for name, rate in given.items()}
    try:
        dataflow = _with_limits(dataflow, request)
        if BreakEven.of(dataflow) is None:
            dataflow = with_best_alternates(dataflow, costs_of(figures))
        cloud = cloud_of(request.catalogue, folder)
        return Problem.of(dataflow, cloud, rates, request.message_bytes, costs_of(figures))
    except BadValue as error:
        expected = f"; expected {error.expected}" if error.expected else ""
        raise InputError("BAD_PLAN", f"{error}{expected}") from None
    except ValueError as error:
        raise InputError("BAD_PLAN", str(error)) from None


def _with_limits(dataflow: Dataflow, request: CapacityRequest) -> Dataflow:
    """The dataflow with the limits of the request in place of those of its service level."""
    level = dataflow.service_level
    if request.throughput_min is not None:
        level = replace(level, throughput_min=request.throughput_min)
    if request.budget_per_h is not None:
        level = replace(level, budget_per_h=_money("--budget", request.budget_per_h))
    if request.cores_max is not None:
        level = replace(level, processors_max=request.cores_max)
    if request.break_even is not None:
        best, comma, worst = request.break_even.partition(",")
        if not comma:
            message = f"--break-even is {request.break_even[:60]!r}"
            raise InputError("BAD_PLAN", f"{message}; expected the cost per hour at best and at worst, such as 800,400")
        level = replace(
            level,
            break_even_at_best_per_h=_money("--break-even", best),
            break_even_at_worst_per_h=_money("--break-even", worst),
        )
    return replace(dataflow, service_level=level)


def _money(option: str, text: str) -> Decimal:
    try:
        amount = Decimal(text.strip())
    except ArithmeticError:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise InputError("BAD_PLAN", f"{option} is {text[:60]!r}; expected an amount per hour, such as 12.50")
    return amount


def answers_of(
    problem: Problem,
    algorithms: Sequence[str],
    time_limit_s: float,
    progress: Callable[[str], None] | None = None,
) -> tuple[Answer, ...]:
    """The answer of each algorithm, in order."""
    for name in algorithms:
        make_planner(name)
    answers = []
    for name in algorithms:
        if progress is not None:
            progress(name)
        answers.append(plan_with(name, problem, time_limit_s))
    return tuple(answers)


def best_plan(answers: Sequence[Answer]) -> Plan:
    """The plan of most profit; raises :class:`Infeasible` with what would have to change if there is none."""
    best = reduce(better, answers, None)
    if isinstance(best, Plan):
        return best
    first = answers[0]
    assert isinstance(first, NoPlan)
    remedies = "; or ".join(each.sentence for each in first.relaxations)
    raise Infeasible(first.condition, first.reason + (f"; {remedies}" if remedies else ""))


def plans_picture(problem: Problem, answers: Sequence[Answer], ending: str) -> bytes:
    """Cost against value of all plans, with the Pareto front; ``ending`` is that of the file."""
    from headgate.planning.pareto import pareto_front
    from headgate.report.plans import draw_plans

    return draw_plans(problem, [each for each in answers if isinstance(each, Plan)], pareto_front(problem), ending)


@dataclass(frozen=True, slots=True)
class Latency:
    """Predicted seconds that a message spends in queues and tasks, and the share of time that each task is busy."""

    mean_s: float | None
    p95_s: float | None
    """Both are none where a task is always busy: then its queue grows, and latency has no bound."""

    busy: Mapping[str, float]


def latencies(problem: Problem, answers: Sequence[Answer]) -> dict[str, Latency]:
    """The predicted latency of each plan, by algorithm."""
    return {each.planner: predicted_latency(problem, each) for each in answers if isinstance(each, Plan)}


def predicted_latency(problem: Problem, plan: Plan) -> Latency:
    """Predict latency with a network of M/M/k queues, a queue for each task and a server for each of its cores."""
    from headgate.queueing.network import Network, Operator, Route
    from headgate.queueing.predict import predict

    shape, chosen = problem.shape, plan.deployment.alternates
    names = [str(name) for name in shape.names]
    active = [ways.index(chosen.get(name, ways[0])) for name, ways in zip(names, shape.alternates, strict=True)]
    speeds: dict[str, list[float]] = {name: [] for name in names}
    for machine in plan.deployment.machines:
        power = problem.cloud.vm_class(machine.vm_class).core_power
        for task, count in machine.cores.items():
            speeds[task] += [power] * count
    operators = tuple(
        Operator(
            name,
            1 / max(float(shape.cost_s[i, active[i]]), NO_WORK_S),
            arrival_rate_per_s=float(problem.external[i]),
            speeds=tuple(speeds[name]) or (1.0,),
        )
        for i, name in enumerate(names)
    )
    routes = tuple(
        Route(names[source], names[target], float(shape.selectivity[source, active[source]] * share))
        for source, target, share in zip(shape.stream_source, shape.stream_target, shape.stream_share, strict=True)
    )
    busy = _busy(operators, routes)
    if any(share >= 1 - SLACK for share in busy.values()):
        return Latency(None, None, busy)
    prediction = predict(Network(operators, routes), [len(operator.speeds) for operator in operators])
    return Latency(prediction.mean_s, prediction.percentile_s(0.95), busy)


def _busy(operators: Sequence[Operator], routes: Sequence[Route]) -> dict[str, float]:
    """The share of time that each operator works, in topological order: one that is always busy passes on less."""
    arriving = {each.name: each.arrival_rate_per_s for each in operators}
    busy = {}
    for each in operators:
        capacity = each.service_rate_per_s * sum(each.speeds)
        busy[each.name] = min(arriving[each.name] / capacity, 1.0)
        for route in routes:
            if route.source == each.name:
                arriving[route.target] += min(arriving[each.name], capacity) * route.mean
    return busy
