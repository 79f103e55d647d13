"""Exhaustive search with pruning (BR): every choice of alternates, every count of instances."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from headgate.capacity.serve import propagate, rates_of
from headgate.model.arrays import Ints
from headgate.planning.estimate import estimate
from headgate.planning.exact import layout_of
from headgate.planning.explain import planned
from headgate.planning.packing import cheapest_bins
from headgate.planning.plan import Answer, NoPlan
from headgate.planning.problem import SLACK, Problem

__all__ = ["BruteForce"]


@dataclass(frozen=True, slots=True)
class BruteForce:
    """Searches all candidates. It shares only the evaluation with the mixed-integer program.

    Pruned: alternates and counts whose profit could not exceed the best found even if all that is open came at the
    least price; counts with which the throughput could not be reached even if all that is open kept up; instances
    beyond what a task could use. Where the network is narrow, what was found is placed as the exact planner places it.
    """

    time_limit_s: float = 600.0
    name: str = "br"

    def plan(self, problem: Problem) -> Answer:
        began = time.perf_counter()
        search = _Search(problem, began + self.time_limit_s)
        ways = [range(len(names)) for names in problem.shape.alternates]
        choices = [np.array(active, dtype=np.int64) for active in product(*ways)]
        # The most valuable first: the sooner a good plan is known, the more is pruned.
        for active in sorted(choices, key=problem.value, reverse=True):
            search.with_alternates(active)
            if search.late:
                break
        if search.best is None:
            message = "no plan was found in time" if search.late else "no number of instances is enough"
            return NoPlan(
                self.name, "NO_TIME" if search.late else "NO_PLAN", message, took_s=time.perf_counter() - began
            )
        active, instances = search.best
        machines = np.zeros(len(problem.cloud.classes), dtype=np.int64)
        for group, power in enumerate(search.powers):
            for kind, _, count in cheapest_bins(problem.cloud, int(instances[:, group].sum()), power):
                machines[kind] += count
        layout = layout_of(problem, instances, machines)
        estimated = estimate(problem, active, layout)
        looked = f"{search.seen:,} choices were looked at" + (", then time was up" if search.late else "")
        bound = None if search.late or problem.sigma == 0 else estimated.theta
        return planned(self.name, problem, active, layout, estimated, began, bound, (looked,))


@dataclass(slots=True)
class _Search:
    problem: Problem
    deadline: float
    powers: list[float] = field(init=False)
    price: list[float] = field(init=False)
    """The least that a core of each power costs."""

    best: tuple[Ints, Ints] | None = None
    best_key: tuple[float, float] = (-np.inf, -np.inf)
    rates: tuple[Any, ...] = ()
    seen: int = 0
    late: bool = False

    def __post_init__(self) -> None:
        classes = self.problem.cloud.classes
        self.powers = sorted({each.core_power for each in classes})
        self.price = [
            min(float(each.price_per_h) / each.cores for each in classes if each.core_power >= power)
            for power in self.powers
        ]

    def with_alternates(self, active: Ints) -> None:
        """All counts for given alternates, task by task in topological order."""
        problem = self.problem
        value = problem.value(active)
        needed = problem.needed_power(active)
        cost = problem.shape.cost_of(active)
        options: list[list[tuple[int, ...]]] = [
            list(self._options(needed[task])) if cost[task] > 0 else [()] for task in range(problem.tasks)
        ]
        least = [min((self._least(each) for each in task_options), default=0.0) for task_options in options]
        behind = [*np.cumsum(least[::-1])[::-1].tolist(), 0.0]
        counts = np.zeros((problem.tasks, len(self.powers)), dtype=np.int64)
        self.rates = rates_of(problem.shape, active, problem.external)
        self._descend(active, value, options, behind, counts, 0, 0.0)

    def _options(self, needed: float) -> Iterator[tuple[int, ...]]:
        """Counts by power with which no instance is one too many."""
        most = [max(int(np.ceil(needed / power - SLACK)), 1) for power in self.powers]
        for counts in product(*(range(each + 1) for each in most)):
            if not any(counts):
                continue
            total = sum(count * power for count, power in zip(counts, self.powers, strict=True))
            spare = total - min(power for count, power in zip(counts, self.powers, strict=True) if count)
            if sum(counts) == 1 or spare < needed - SLACK:
                yield counts

    def _least(self, counts: tuple[int, ...]) -> float:
        return sum(count * price for count, price in zip(counts, self.price, strict=False))

    def _descend(
        self,
        active: Ints,
        value: float,
        options: list[list[tuple[int, ...]]],
        behind: list[float],
        counts: Ints,
        task: int,
        spent: float,
    ) -> None:
        problem = self.problem
        if self.late:
            return
        if task == problem.tasks:
            self._weigh(active, value, counts)
            return
        for option in options[task]:
            self.seen += 1
            if self.seen % 1_000 == 0 and time.perf_counter() > self.deadline:
                self.late = True
                return
            at_least = spent + self._least(option)
            if not self._may_be_better(value, at_least + behind[task + 1]):
                continue
            counts[task] = option or 0
            if self._omega(counts, task + 1) >= problem.throughput_min - SLACK:
                self._descend(active, value, options, behind, counts, task + 1, at_least)
        counts[task] = 0

    def _may_be_better(self, value: float, cost: float) -> bool:
        budget = self.problem.budget_per_h
        if budget is not None and cost > float(budget) + SLACK:
            return False
        return (self.problem.theta(value, cost), -cost) > self.best_key

    def _omega(self, counts: Ints, decided: int) -> float:
        """Relative throughput if tasks that are still open kept up with everything."""
        power = counts @ np.array(self.powers)
        power[decided:] = np.inf
        return float(propagate(self.rates, power))

    def _weigh(self, active: Ints, value: float, counts: Ints) -> None:
        problem = self.problem
        cost = 0.0
        for group, power in enumerate(self.powers):
            for kind, _, count in cheapest_bins(problem.cloud, int(counts[:, group].sum()), power):
                cost += count * float(problem.cloud.classes[kind].price_per_h)
        if problem.cores_max is not None and counts.sum() > problem.cores_max:
            return
        if self._may_be_better(value, cost):
            self.best_key = (problem.theta(value, cost), -cost)
            self.best = (active.copy(), counts.copy())
