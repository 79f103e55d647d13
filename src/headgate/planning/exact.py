"""The proven optimum: a mixed-integer program on counts, with its bound."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from headgate.model.arrays import Ints
from headgate.planning.estimate import estimate
from headgate.planning.explain import planned
from headgate.planning.greedy import Centralised, Sharded
from headgate.planning.growth import depth_first, spread_out
from headgate.planning.layout import Layout, filled
from headgate.planning.packing import cheapest_bins
from headgate.planning.plan import Answer, NoPlan, Plan, better
from headgate.planning.problem import Problem
from headgate.planning.programs.mixed_integer import Goal, Solution
from headgate.planning.search import search

__all__ = ["Exact", "goal_of", "layout_of"]

MARGIN = 5e-7
"""Of relative throughput: what the solver's tolerance may cost."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The plan of most profit, with an upper bound; at the time limit, the best so far.

    It is never worse than CE or SH, whose plans it looks at too. Where the network between two machines is too narrow
    for a stream, the bound is that of a network with room for everything.
    """

    time_limit_s: float = 30.0
    tolerance: float = 1e-4
    """The gap, in units of value, at which it is content."""

    name: str = "exact"

    def plan(self, problem: Problem) -> Answer:
        began = time.perf_counter()
        known = better(Centralised().plan(problem), Sharded().plan(problem))
        goal = goal_of(problem)
        at_least = _objective(problem, known) if isinstance(known, Plan) else -np.inf
        result = search(problem, goal, began + self.time_limit_s, self.tolerance, at_least)
        if result.impossible and not isinstance(known, Plan):
            return _no_plan(self.name, problem, began)
        best: Answer | None = known if isinstance(known, Plan) else None
        bound = _theta_bound(problem, max(result.bound, at_least))
        if result.solution is not None and result.solution.active is not None:
            best = better(self._placed(problem, result.solution, bound, began), best)
        if best is None:
            message = f"no plan was found within {self.time_limit_s:g} s, nor was it proven that there is none"
            return NoPlan(self.name, "NO_TIME", message, took_s=time.perf_counter() - began)
        if isinstance(best, NoPlan):
            return replace(best, planner=self.name, took_s=time.perf_counter() - began)
        bound = max(bound, best.theta)
        proof = _proof(problem, bound - best.theta, time.perf_counter() - began)
        kept = tuple(each for each in best.explanation if not each.startswith(_PROOF))
        took_s = time.perf_counter() - began
        return replace(best, planner=self.name, bound=bound, took_s=took_s, explanation=(proof, *kept))

    def _placed(self, problem: Problem, solution: Solution, bound: float, began: float) -> Answer:
        assert solution.active is not None
        assert solution.instances is not None
        assert solution.machines is not None
        active = solution.active
        answers: list[Answer] = []
        for spread in (False, True):
            layout = layout_of(problem, solution.instances, solution.machines, spread)
            estimated = estimate(problem, active, layout)
            if spread and not estimated.meets(problem):
                layout, estimated = spread_out(problem, active, layout)
            answers.append(planned(self.name, problem, active, layout, estimated, began, bound))
            if isinstance(answers[-1], Plan):
                break
        return answers[-1]


_PROOF = "no plan"


def _proof(problem: Problem, gap: float, took_s: float) -> str:
    if problem.sigma == 0:
        return f"{_PROOF} is cheaper by more than the solver's tolerance; proven in {took_s:.2g} s"
    more = f"more than {gap:.2g} more profit" if gap > 1e-9 else "more profit"
    return f"{_PROOF} has {more}; proven in {took_s:.2g} s"


def goal_of(problem: Problem) -> Goal:
    """Maximise Theta under the limits; without break-even costs, minimise cost."""
    sigma = problem.sigma
    return Goal(
        1.0 if sigma > 0 else 0.0,
        sigma if sigma > 0 else 1.0 / _scale(problem),
        throughput_min=max(problem.throughput_min - MARGIN, 0.0),
        budget_per_h=None if problem.budget_per_h is None else float(problem.budget_per_h),
        cores_max=problem.cores_max,
    )


def _scale(problem: Problem) -> float:
    """The approximate cost of the machines, which makes gaps comparable with and without break-even costs."""
    price = min(float(each.price_per_power_h) for each in problem.cloud.classes)
    return max(float(problem.needed_power(problem.best).sum()) * price, price)


def _objective(problem: Problem, plan: Plan) -> float:
    goal = goal_of(problem)
    return goal.per_value * plan.gamma - goal.per_money * plan.cost_per_h


def _theta_bound(problem: Problem, objective: float) -> float:
    """The bound on the goal as a bound on Theta."""
    even = problem.break_even
    if even is None or problem.sigma == 0:
        return 0.0
    return objective - even.value_max + even.sigma * even.cost_at_max


def layout_of(problem: Problem, instances: Ints, machines: Ints, spread: bool = False) -> Layout:
    """A layout from counts: neighbours together, or each task on as many machines as possible (``spread``)."""
    classes = problem.cloud.classes
    order = depth_first(problem)
    layout = Layout.empty(problem.tasks)
    for group, power in enumerate(sorted({each.core_power for each in classes})):
        counts = instances[order, group]
        sequence = np.repeat(order, counts)
        if spread and len(sequence):
            # The n-th instance of every task, before the next of any.
            turn = np.concatenate([np.arange(count) / max(count, 1) for count in counts])
            sequence = sequence[np.argsort(turn, kind="stable")]
        bins = [
            (kind, each.cores, int(machines[kind]))
            for kind, each in sorted(enumerate(classes), key=lambda each: -each[1].cores)
            if each.core_power == power and machines[kind] > 0
        ]
        cheapest = cheapest_bins(problem.cloud, len(sequence), power)
        if not bins or _price(problem, cheapest) <= _price(problem, bins):
            bins = cheapest
        layout = layout.joined(filled(problem.tasks, sequence, bins))
    return layout


def _price(problem: Problem, bins: list[tuple[int, int, int]]) -> float:
    return sum(float(problem.cloud.classes[kind].price_per_h) * count for kind, _, count in bins)


def _no_plan(name: str, problem: Problem, began: float) -> NoPlan:
    from headgate.planning.relax import refused

    refusal = refused(problem)
    return replace(refusal, planner=name, took_s=time.perf_counter() - began)
