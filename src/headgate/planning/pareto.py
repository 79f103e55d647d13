"""The Pareto front of cost and value."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from headgate.planning.exact import Exact
from headgate.planning.objective import BreakEven
from headgate.planning.plan import Plan
from headgate.planning.problem import Problem

__all__ = ["FACTORS", "pareto_front"]

FACTORS = tuple(2.0**power for power in (-12, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 12))
"""Factors by which the weight of cost is varied around the break-even costs."""


def pareto_front(problem: Problem, time_limit_s: float = 10.0, factors: Sequence[float] = FACTORS) -> tuple[Plan, ...]:
    r"""The best plans for more and less :math:`\sigma`, cheapest first; each is the cheapest of its value.

    They are those plans that are best for some price of value (the convex part of the Pareto front).
    """
    even = problem.break_even
    if even is None or even.sigma == 0:
        plan = Exact(time_limit_s).plan(problem)
        return (plan,) if isinstance(plan, Plan) else ()
    deadline = time.perf_counter() + time_limit_s
    plans: dict[tuple[float, float], Plan] = {}
    for turn, factor in enumerate(factors):
        share_s = max((deadline - time.perf_counter()) / (len(factors) - turn), 0.1)
        scaled = BreakEven(even.value_max, even.value_min, even.cost_at_max / factor, even.cost_at_min / factor)
        plan = Exact(share_s).plan(replace(problem, break_even=scaled))
        if isinstance(plan, Plan):
            theta = problem.theta(plan.gamma, plan.cost_per_h)
            key = (round(plan.cost_per_h, 9), round(plan.gamma, 9))
            plans[key] = replace(plan, theta=theta, bound=None)
    best: list[Plan] = []
    for plan in sorted(plans.values(), key=lambda each: (each.cost_per_h, -each.gamma)):
        if not best or plan.gamma > best[-1].gamma + 1e-12:
            best.append(plan)
    return tuple(best)
