"""Plan a dataflow's alternates and machines: what it takes, what it costs, and whether it pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from headgate.errors import BadValue, InputError
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.planning.plan import Answer
from headgate.planning.planners import make_planner, plan_with
from headgate.planning.problem import Problem
from headgate.service.load import load
from headgate.service.simulate import cloud_of, rates_of
from headgate.tasks.registry import Registry

__all__ = ["Wanted", "answers_of", "problem_of"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be planned, as it was written."""

    dataflow: Path
    rates: tuple[str, ...]
    catalogue: str = "ec2-2013"
    peak: bool = False
    throughput_min: float | None = None
    budget_per_h: str | None = None
    break_even: str | None = None
    cores_max: int | None = None
    message_bytes: float = 100.0


def problem_of(wanted: Wanted, registry: Registry) -> Problem:
    """Everything read and checked; what is wrong is told in one sentence, or with every fault of the dataflow."""
    dataflow = load(wanted.dataflow, registry).dataflow
    sources = [str(name) for name in Graph(dataflow).sources()]
    given = rates_of(wanted.rates, sources, wanted.dataflow.parent)
    rates = {name: rate.peak_per_s if wanted.peak else rate.mean_per_s for name, rate in given.items()}
    try:
        dataflow = _asked(dataflow, wanted)
        cloud = cloud_of(wanted.catalogue, wanted.dataflow.parent)
        return Problem.of(dataflow, cloud, rates, wanted.message_bytes)
    except BadValue as error:
        expected = f"; expected {error.expected}" if error.expected else ""
        raise InputError("BAD_PLAN", f"{error}{expected}") from None
    except ValueError as error:
        raise InputError("BAD_PLAN", str(error)) from None


def _asked(dataflow: Dataflow, wanted: Wanted) -> Dataflow:
    """The dataflow with the options before what its own service level says."""
    level = dataflow.service_level
    if wanted.throughput_min is not None:
        level = replace(level, throughput_min=wanted.throughput_min)
    if wanted.budget_per_h is not None:
        level = replace(level, budget_per_h=_money("--budget", wanted.budget_per_h))
    if wanted.cores_max is not None:
        level = replace(level, processors_max=wanted.cores_max)
    if wanted.break_even is not None:
        best, comma, worst = wanted.break_even.partition(",")
        if not comma:
            message = f"--break-even is {wanted.break_even[:60]!r}"
            raise InputError("BAD_PLAN", f"{message}; expected the cost per hour at best and at worst, such as 800,400")
        level = replace(
            level,
            break_even_at_best_per_h=_money("--break-even", best),
            break_even_at_worst_per_h=_money("--break-even", worst),
        )
    return replace(dataflow, service_level=level)


def _money(option: str, text: str) -> Decimal:
    try:
        found = Decimal(text.strip())
    except ArithmeticError:
        found = Decimal(-1)
    if not found.is_finite() or found < 0:
        raise InputError("BAD_PLAN", f"{option} is {text[:60]!r}; expected an amount per hour, such as 12.50")
    return found


def answers_of(
    problem: Problem,
    algorithms: Sequence[str],
    time_limit_s: float,
    progress: Callable[[str], None] | None = None,
) -> tuple[Answer, ...]:
    """The answer of each algorithm, in order."""
    for name in algorithms:
        make_planner(name)
    found = []
    for name in algorithms:
        if progress is not None:
            progress(name)
        found.append(plan_with(name, problem, time_limit_s))
    return tuple(found)
