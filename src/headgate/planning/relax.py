"""Explains why no plan is feasible and which limits to relax."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from headgate.planning.greedy import Centralised
from headgate.planning.plan import NoPlan, Plan, Relaxation
from headgate.planning.problem import Problem
from headgate.planning.programs.mixed_integer import Goal
from headgate.planning.search import search

__all__ = ["network_relaxations", "refused", "relaxations"]

TIME_S = 5.0


def refused(problem: Problem) -> NoPlan:
    """The answer if the limits contradict each other."""
    relaxed = relaxations(problem)
    currency = problem.cloud.currency
    by_demand = {each.demand: each for each in relaxed}
    asked = f"relative throughput of {problem.throughput_min:g}"
    if problem.budget_per_h is not None and "budget" in by_demand:
        message = f"{asked} costs {by_demand['budget'].possible:,.2f} {currency} an hour at least"
        return NoPlan("", "NO_BUDGET", f"{message}, and the budget is {problem.budget_per_h} {currency}", relaxed)
    if problem.cores_max is not None and "cores" in by_demand:
        message = f"{asked} needs {by_demand['cores'].possible:,.0f} cores at least"
        return NoPlan("", "NO_CORES", f"{message}, and the limit is {problem.cores_max:,}", relaxed)
    return NoPlan("", "NO_THROUGHPUT", f"{asked} cannot be reached with these machines", relaxed)


def relaxations(problem: Problem) -> tuple[Relaxation, ...]:
    """The limits to relax, one at a time, the smallest step first."""
    made = (_budget(problem), _cores(problem), _throughput(problem), _rate(problem))
    possible = [each for each in made if each is not None]
    return tuple(sorted(possible, key=lambda each: each.step))


def _least(problem: Problem, per_money: float, per_core: float) -> float | None:
    goal = Goal(
        0.0,
        per_money,
        throughput_min=problem.throughput_min - 5e-7,
        budget_per_h=None if problem.budget_per_h is None else float(problem.budget_per_h),
        cores_max=problem.cores_max,
        per_core=per_core,
    )
    solution = search(problem, goal, time.perf_counter() + TIME_S, 1e-6).solution
    return None if solution is None or solution.objective is None else -solution.objective


def _budget(problem: Problem) -> Relaxation | None:
    if problem.budget_per_h is None:
        return None
    least = _least(replace(problem, budget_per_h=None), 1.0, 0.0)
    if least is None:
        return None
    asked = float(problem.budget_per_h)
    return Relaxation("budget", asked, least, f"a budget of {least:,.2f} {problem.cloud.currency} an hour is enough")


def _cores(problem: Problem) -> Relaxation | None:
    if problem.cores_max is None:
        return None
    least = _least(replace(problem, cores_max=None), 0.0, 1.0)
    if least is None:
        return None
    least = float(round(least))
    return Relaxation("cores", float(problem.cores_max), least, f"{least:,.0f} cores are enough")


def _most_throughput(problem: Problem) -> float | None:
    budget = None if problem.budget_per_h is None else float(problem.budget_per_h)
    goal = Goal(0.0, 0.0, 1.0, budget_per_h=budget, cores_max=problem.cores_max)
    solution = search(problem, goal, time.perf_counter() + TIME_S, 1e-6).solution
    return None if solution is None else float(solution.omega)


def _throughput(problem: Problem) -> Relaxation | None:
    most = _most_throughput(problem)
    if most is None or most <= 0:
        return None
    most = float(np.floor(most * 1_000) / 1_000)
    return Relaxation(
        "throughput", problem.throughput_min, most, f"a relative throughput of {most:.3f} is possible within the limits"
    )


def _rate(problem: Problem) -> Relaxation | None:
    """The largest share of the rates with which the throughput is met, to a hundredth."""
    low, high = 0, 100
    while high - low > 1:
        middle = (low + high) // 2
        rates = {name: rate * middle / 100 for name, rate in problem.rates.items()}
        most = _most_throughput(replace(problem, rates=rates))
        if most is not None and most >= problem.throughput_min - 1e-6:
            low = middle
        else:
            high = middle
    if low == 0:
        return None
    return Relaxation("rate", 1.0, low / 100, f"{low} % of the rates can be processed within the limits")


def network_relaxations(problem: Problem) -> tuple[Relaxation, ...]:
    """Relaxations where the network is too slow: a lower throughput, or smaller messages."""
    possible = []
    low, high = 0, 100
    while high - low > 1:
        middle = (low + high) // 2
        asked = replace(problem, throughput_min=problem.throughput_min * middle / 100)
        low, high = (middle, high) if isinstance(Centralised().plan(asked), Plan) else (low, middle)
    if low:
        most = problem.throughput_min * low / 100
        message = f"a relative throughput of {most:.3f} gets through the network"
        possible.append(Relaxation("throughput", problem.throughput_min, most, message))
    smaller = problem.message_bytes
    for _ in range(20):
        smaller /= 2
        if isinstance(Centralised().plan(replace(problem, message_bytes=smaller)), Plan):
            message = f"messages of {smaller:,.3g} bytes instead of {problem.message_bytes:,.3g} would get through"
            possible.append(Relaxation("message_bytes", problem.message_bytes, smaller, message))
            break
    return tuple(sorted(possible, key=lambda each: each.step))
