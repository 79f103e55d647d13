"""Search for the best plan of a goal and a bound: which programs are solved, in which order.

What a task gets depends on the selectivities before it. Where alternates agree on them, or few combinations are
possible, each combination is a program with constants, and the best of their optima is the optimum. Where there are
many, one relaxed program gives the bound and proposes a combination, whose own program gives the plan. Large programs
are solved as linear ones first: few alternates are left open by them, and rounding counts up costs little where counts
are large.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.planning.packing import cheapest_bins
from headgate.planning.problem import Problem
from headgate.planning.programs.mixed_integer import Goal, Program, Solution
from headgate.planning.programs.serving import Allowed, combinations_of

__all__ = ["MOST_COMBINATIONS", "SearchResult", "rates_with", "search"]

MOST_COMBINATIONS = 64
SMALL = 40
"""Counts up to which a program is solved with whole numbers at once."""

MIDDLING = 200
"""Counts up to which it is worth trying again with whole numbers."""

CONTENT = 1e-3
"""The gap at which a large program is no longer worked on."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """The best solution, if there is one, and the bound on all."""

    solution: Solution | None
    bound: float

    @property
    def impossible(self) -> bool:
        """Whether it is proven that there is none."""
        return self.solution is None and self.bound == -np.inf


def search(problem: Problem, goal: Goal, deadline: float, gap: float = 1e-4, at_least: float = -np.inf) -> SearchResult:
    """Solve until a deadline (of :func:`time.perf_counter`) for a plan better than ``at_least``."""
    combinations = combinations_of(problem.shape, MOST_COMBINATIONS)
    if combinations is None:
        return _relaxed_first(problem, goal, deadline, gap)
    ranked: list[tuple[float, int, Allowed, Floats]] = []
    for allowed in combinations:
        rates = rates_with(problem, allowed, min)
        # With counts that need not be whole, the bound is a matter of milliseconds: bad combinations end here.
        coarse = Program(problem, goal, allowed, rates, rates, whole=False) if len(combinations) > 1 else None
        bound = np.inf if coarse is None else coarse.solved(_left(deadline), gap).bound
        ranked.append((bound, len(ranked), allowed, rates))
    best: Solution | None = None
    proven = -np.inf
    for bound, _, allowed, rates in sorted(ranked, reverse=True, key=lambda each: (each[0], -each[1])):
        least = max(at_least, -np.inf if best is None or best.objective is None else best.objective)
        if bound <= least + gap / 2:
            proven = max(proven, bound)
            continue
        solution = _settled(problem, goal, allowed, rates, deadline, gap)
        proven = max(proven, min(bound, solution.bound))
        if solution.objective is not None and (best is None or solution.objective > (best.objective or -np.inf)):
            best = solution
    return SearchResult(best, proven)


def _left(deadline: float) -> float:
    return max(deadline - time.perf_counter(), 0.05)


def _settled(problem: Problem, goal: Goal, allowed: Allowed, rates: Floats, deadline: float, gap: float) -> Solution:
    """The program of one combination of selectivities."""
    size = problem.tasks * len(powers_of(problem))
    exact = Program(problem, goal, allowed, rates, rates)
    if size <= SMALL:
        return exact.solved(_left(deadline), gap)
    solved = _quickly(problem, goal, allowed, rates, deadline, gap)
    if solved.objective is not None and solved.bound - solved.objective > CONTENT:
        coarse = Program(problem, goal, allowed, rates, rates, whole=False).solved(0.5 * _left(deadline), gap / 2)
        solved = _better(solved, _rounded(problem, goal, coarse), min(solved.bound, coarse.bound))
    if solved.objective is not None and solved.bound - solved.objective > CONTENT and size <= MIDDLING:
        whole = exact.solved(_left(deadline), gap, solved)
        solved = _better(solved, whole, min(solved.bound, whole.bound))
    return solved


def _quickly(problem: Problem, goal: Goal, allowed: Allowed, rates: Floats, deadline: float, gap: float) -> Solution:
    """A plan and a bound from linear programs: fix fractional alternates, then round counts up."""
    linear = Program(problem, goal, allowed, rates, rates, whole=False, either=False).solved(_left(deadline), gap)
    if linear.active is None or linear.torn is None:
        return linear
    torn = set(linear.torn.tolist())
    fixed = [ways if task in torn else [int(linear.active[task])] for task, ways in enumerate(allowed)]
    program = Program(problem, goal, fixed, rates, rates, whole=False)
    rounded = _rounded(problem, goal, program.solved(0.4 * _left(deadline), gap))
    return replace(rounded, bound=linear.bound)


def _relaxed_first(problem: Problem, goal: Goal, deadline: float, gap: float) -> SearchResult:
    """A bound from a relaxed program, and a plan with the selectivities that it proposes; then both are worked on."""
    every: Allowed = [list(range(len(ways))) for ways in problem.shape.alternates]
    low, high = rates_with(problem, every, min), rates_with(problem, every, max)
    best: Solution | None = None
    bound = np.inf
    for either, share in ((False, 0.5), (True, 1.0)):
        program = Program(problem, goal, every, low, high, whole=False, either=either)
        relaxed = program.solved(0.6 * _left(deadline), gap)
        if relaxed.infeasible:
            return SearchResult(None, -np.inf)
        bound = min(bound, relaxed.bound)
        if relaxed.active is not None:
            turn = time.perf_counter() + share * _left(deadline)
            rates = problem.achievable(relaxed.active)
            tried = _settled(problem, goal, _like(problem, relaxed.active), rates, turn, gap)
            best = tried if best is None else _better(best, tried, bound)
        if best is not None and best.objective is not None and bound - best.objective <= max(gap, CONTENT):
            break
    return SearchResult(best if best is not None and best.objective is not None else None, bound)


def _better(one: Solution, other: Solution, bound: float) -> Solution:
    ahead = other.objective is not None and (one.objective is None or other.objective > one.objective)
    return replace(other if ahead else one, bound=bound)


def powers_of(problem: Problem) -> list[float]:
    """The powers of cores, least first."""
    return sorted({each.core_power for each in problem.cloud.classes})


def _rounded(problem: Problem, goal: Goal, solution: Solution) -> Solution:
    """Whole instances for the power that each task has: of the cheapest power as many as are busy, one for the rest."""
    if solution.active is None or solution.power is None:
        return replace(solution, objective=None)
    powers = powers_of(problem)
    price = [
        min(float(each.price_per_h) / each.cores for each in problem.cloud.classes if each.core_power >= power)
        for power in powers
    ]
    cheapest = min(range(len(powers)), key=lambda group: (round(price[group] / powers[group], 9), -powers[group]))
    instances = np.zeros((problem.tasks, len(powers)), dtype=np.int64)
    costly = problem.shape.cost_of(solution.active) > 0
    for task in np.flatnonzero(costly):
        whole = int((solution.power[task] + 1e-7) // powers[cheapest])
        rest = solution.power[task] - whole * powers[cheapest]
        instances[task, cheapest] = whole
        if rest > 1e-7 or whole == 0:
            fitting = [group for group, power in enumerate(powers) if power >= rest - 1e-7]
            if not fitting:
                instances[task, cheapest] += -(-rest // powers[cheapest])
            else:
                instances[task, min(fitting, key=lambda group: price[group])] += 1
    machines = np.zeros(len(problem.cloud.classes), dtype=np.int64)
    for group, power in enumerate(powers):
        for kind, _, count in cheapest_bins(problem.cloud, int(instances[:, group].sum()), power):
            machines[kind] += count
    cost = sum(float(each.price_per_h) * int(n) for each, n in zip(problem.cloud.classes, machines, strict=True))
    cores = int(instances.sum())
    over = goal.budget_per_h is not None and cost > goal.budget_per_h * (1 + 1e-9)
    if over or (goal.cores_max is not None and cores > goal.cores_max):
        return replace(solution, objective=None)
    objective = goal.per_value * problem.value(solution.active) - goal.per_money * cost
    objective += goal.per_throughput * solution.omega - goal.per_core * cores
    return replace(solution, objective=objective, instances=instances, machines=machines)


def _like(problem: Problem, active: Ints) -> Allowed:
    """The alternates that put out as much as the active ones; of outputs all."""
    shape = problem.shape
    chosen = shape.out_of(active)
    return [
        [way for way in range(len(ways)) if task in shape.outputs or shape.selectivity[task, way] == chosen[task]]
        for task, ways in enumerate(shape.alternates)
    ]


def rates_with(problem: Problem, allowed: Allowed, pick: object) -> Floats:
    """Achievable rates when every task has the least or the largest selectivity of its allowed alternates."""
    choose = min if pick is min else max
    shape = problem.shape
    active = [choose(ways, key=lambda way, t=task: shape.selectivity[t, way]) for task, ways in enumerate(allowed)]  # type: ignore[misc]
    return problem.achievable(np.array(active, dtype=np.int64))
