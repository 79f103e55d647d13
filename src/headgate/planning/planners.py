"""The planners by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headgate.errors import unknown
from headgate.planning.auto import Auto
from headgate.planning.brute_force import BruteForce
from headgate.planning.exact import Exact
from headgate.planning.genetic import Genetic
from headgate.planning.greedy import Centralised, Sharded
from headgate.planning.plan import Answer, Plan, Planner
from headgate.planning.problem import Problem
from headgate.planning.relax import network_relaxations, refused

__all__ = ["PLANNERS", "make_planner", "plan_with"]

PLANNERS: Mapping[str, tuple[Callable[[float], Planner], str]] = {
    "auto": (lambda limit_s: Auto(limit_s), "the best of all within the time limit"),
    "exact": (lambda limit_s: Exact(limit_s), "the proven optimum, or a plan and how far it may be from it"),
    "ce": (lambda _: Centralised(), "DYN's centralised heuristic"),
    "sh": (lambda _: Sharded(), "DYN's sharded heuristic, where tasks know only themselves"),
    "ga": (lambda limit_s: Genetic(time_limit_s=limit_s), "DYN's genetic algorithm"),
    "br": (lambda limit_s: BruteForce(limit_s), "exhaustive search with pruning, for small dataflows"),
}


def make_planner(name: str, time_limit_s: float = 30.0) -> Planner:
    """A planner by name."""
    if name not in PLANNERS:
        raise unknown("UNKNOWN_PLANNER", f"unknown algorithm {name[:60]!r}", name, PLANNERS)
    return PLANNERS[name][0](time_limit_s)


def plan_with(name: str, problem: Problem, time_limit_s: float = 30.0) -> Answer:
    """The answer of a planner; without a plan, it says which limits to relax."""
    answer = make_planner(name, time_limit_s).plan(problem)
    if isinstance(answer, Plan) or answer.relaxations:
        return answer
    if answer.condition in ("NO_BUDGET", "NO_CORES"):
        # A heuristic may miss a feasible plan; then there is nothing to relax.
        proven = Exact(min(time_limit_s, 10.0)).plan(problem)
        if isinstance(proven, Plan):
            message = f"{answer.reason}; the exact planner meets it for {proven.cost_per_h:,.2f} an hour"
            return replace(answer, reason=message)
        return replace(refused(problem), planner=name, took_s=answer.took_s)
    if answer.condition == "NO_BANDWIDTH":
        return replace(answer, relaxations=network_relaxations(problem))
    return answer
