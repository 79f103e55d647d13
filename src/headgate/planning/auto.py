"""The best of all planners within a deadline."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from headgate.planning.exact import Exact
from headgate.planning.genetic import Genetic
from headgate.planning.greedy import Centralised, Sharded
from headgate.planning.plan import Answer, Plan, better
from headgate.planning.problem import Problem

__all__ = ["Auto"]


@dataclass(frozen=True, slots=True)
class Auto:
    """CE and SH first, which are fast; then the exact planner; GA if a gap and time remain."""

    deadline_s: float = 10.0
    content: float = 0.01
    """The gap with which it does not look further."""

    name: str = "auto"

    def plan(self, problem: Problem) -> Answer:
        began = time.perf_counter()
        best = better(Centralised().plan(problem), Sharded().plan(problem))
        left_s = self.deadline_s - (time.perf_counter() - began)
        exact = Exact(max(0.8 * left_s, 0.1)).plan(problem)
        best = better(exact, best)
        bound = exact.bound if isinstance(exact, Plan) else None
        left_s = self.deadline_s - (time.perf_counter() - began)
        if bound is not None and left_s > 0.5 and isinstance(best, Plan) and bound - best.theta > self.content:
            best = better(best, Genetic(time_limit_s=left_s).plan(problem))
        assert best is not None
        took_s = time.perf_counter() - began
        if not isinstance(best, Plan):
            return replace(exact, planner=self.name, took_s=took_s)
        chosen = f"the best of CE, SH, exact and GA within {self.deadline_s:g} s is that of {best.planner}"
        explanation = (chosen, *best.explanation)
        return replace(best, planner=self.name, took_s=took_s, bound=bound, explanation=explanation)
