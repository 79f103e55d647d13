"""The optimum at every decision, with the cost of changes: instances move only where that pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.core_moves import add_cores, drain_due, fit_power, throughput
from headgate.model.arrays import Ints
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.model.dataflow import Dataflow
from headgate.planning.exact import goal_of
from headgate.planning.problem import Problem
from headgate.planning.programs.mixed_integer import Program, Solution
from headgate.planning.programs.serving import combinations_of
from headgate.planning.search import MOST_COMBINATIONS, rates_with

__all__ = ["Optimal", "at_usual_speed", "posed"]

FREE = 1e-4
"""Share of its price that a machine costs for as long as it is paid: what is not needed should still go."""


STAY = 5e-4
"""Profit for which nothing is changed."""


@dataclass(frozen=True, slots=True)
class Optimal:
    """Solves the planner's program again at every decision, for the current machines.

    Within its billing period a machine costs next to nothing, so its cores are used, if only for better alternates.
    One whose period ends costs its price, and a new one ``1 + new_costs`` times its price: it is paid for an hour, and
    most dips are shorter, so that a cheaper alternate is often the better answer.
    Each group has the power that was measured. Alternates change only where that brings ``switch_gain`` of profit, and
    instances only as far as they must.
    """

    dataflow: Dataflow
    margin: float = 0.02
    switch_gain: float = 0.002
    new_costs: float = 2.0
    time_limit_s: float = 0.3
    name: str = "exact"

    def decide(self, now: ClusterView, turn: int) -> None:
        del turn
        asked = now.aim(self.margin)
        problem, groups, most = self._problem(now, asked)
        solution = self._solved(problem, most, now.active)
        if solution is None or solution.power is None or solution.active is None or solution.machines is None:
            add_cores(now, asked)
            return
        if self._stays(now, problem, solution.objective):
            return
        now.active[:] = solution.active
        largest = float(now.cloud.largest.core_power)
        for place, (kind, held) in enumerate(groups):
            if not held and solution.machines[place]:
                now.open(kind, int(solution.machines[place]), float(problem.cloud.classes[place].core_power))
        needed = np.where(now.cost > 0, np.maximum(solution.power, 1e-9), 0.0)
        # Where there are many, what has less than a core more than it needs is left alone. The program knows machines
        # by their mean speed: what is missing for that is little, and little is bought for it.
        least = min(now.cloud.classes, key=lambda each: (each.price_per_h, -each.power))
        fit_power(now, needed, needed + (0.0 if _is_small(problem, now.active) else largest), least)
        add_cores(now, now.level.throughput_min, least)
        drain_due(now, 0.9)

    def _stays(self, now: ClusterView, problem: Problem, best: float | None) -> bool:
        """Whether what runs will do: it meets the throughput, and the optimum is hardly better.

        Where there are many machines a little is soon much, since some billing periods end at every decision.
        """
        if not _is_small(problem, now.active) or throughput(now) < now.level.throughput_min:
            return False
        price = np.array([float(each.price_per_h) for each in now.cloud.classes])[now.kind]
        cost = float((price * np.where(now.left_s < now.period_s, 1.0, FREE)).sum())
        goal = goal_of(problem)
        return goal.per_value * problem.value(now.active) - goal.per_money * cost >= (best or 0.0) - STAY

    def _problem(self, now: ClusterView, asked: float) -> tuple[Problem, list[tuple[int, bool]], list[float]]:
        """The planner's problem with a class for each group of machines, what they are, and how many."""
        classes, groups, most = [], [], []
        usual = _usual_speed(now)
        for kind, each in enumerate(now.cloud.classes):
            for due in (False, True):
                rows = np.flatnonzero((now.kind == kind) & ((now.left_s < now.period_s) == due))
                if len(rows):
                    price = each.price_per_h * (1 if due else Decimal(str(FREE)))
                    speed = round(float(now.speed[rows].mean()), 9)
                    classes.append(_like(each, f"{each.name}/{'due' if due else 'paid'}", speed, price))
                    groups.append((kind, True))
                    most.append(float(len(rows)))
            price = each.price_per_h * Decimal(str(1 + self.new_costs))
            classes.append(_like(each, f"{each.name}/new", round(each.core_power * usual, 9), price))
            groups.append((kind, False))
            most.append(np.inf)
        return posed(self.dataflow, now, Cloud("now", tuple(classes), now.cloud.billing), asked), groups, most

    def _solved(self, problem: Problem, most: list[float], active: Ints) -> Solution | None:
        goal = goal_of(problem)
        # With a handful of machines, half of one matters.
        whole, tiny = _is_small(problem, active), _is_small(problem, active, 20)
        stay = [[int(way)] for way in active]
        best: Solution | None = None
        for allowed in [stay, *(combinations_of(problem.shape, MOST_COMBINATIONS) or [])]:
            rates = rates_with(problem, allowed, min)
            program = Program(problem, goal, allowed, rates, rates, whole, whole_instances=tiny, most=most)
            solution = program.solved(self.time_limit_s, 1e-3)
            if solution.objective is None:
                continue
            gain = 0.0 if best is None else self.switch_gain
            if best is None or best.objective is None or solution.objective > best.objective + gain:
                best = solution
        return best


def _is_small(problem: Problem, active: Ints, cores: int = 150) -> bool:
    """Whether the plan has only a few machines or cores."""
    return bool(problem.needed_power(active).sum() < cores * max(each.core_power for each in problem.cloud.classes))


def posed(dataflow: Dataflow, now: ClusterView, cloud: Cloud, asked: float) -> Problem:
    """The planner's problem for the current rates and backlog."""
    names = [str(name) for name in now.shape.names]
    problem = Problem.of(
        replace(dataflow, service_level=replace(now.level, budget_per_h=None, processors_max=None)),
        cloud,
        {names[place]: float(now.external[place]) for place in now.shape.sources},
        costs=_costs(now),
        shares=_shares(now),
    )
    waiting = {name: float(late) for name, late in zip(names, now.waiting, strict=True) if late > 0}
    return replace(problem, throughput_min=asked, waiting=waiting)


def at_usual_speed(each: VmClass, now: ClusterView) -> VmClass:
    """A VM class with the expected speed of its machines."""
    return _like(each, each.name, round(each.core_power * _usual_speed(now), 9), each.price_per_h)


def _usual_speed(now: ClusterView) -> float:
    """Mean relative speed of the machines."""
    rated = np.array([each.core_power for each in now.cloud.classes])[now.kind]
    return float((now.speed / rated).mean()) if len(rated) else 1.0


def _like(each: VmClass, name: str, speed: float, price: Decimal) -> VmClass:
    return VmClass(name, each.cores, max(speed, 1e-6), each.bandwidth_mbit_per_s, max(price, Decimal("1e-9")))


def _costs(now: ClusterView) -> dict[tuple[str, str], tuple[float, float]]:
    shape = now.shape
    return {
        (str(name), way): (float(shape.cost_s[task, column]), float(shape.selectivity[task, column]))
        for task, name in enumerate(shape.names)
        for column, way in enumerate(shape.alternates[task])
    }


def _shares(now: ClusterView) -> dict[tuple[str, str], float]:
    shape = now.shape
    return {
        (str(shape.names[source]), str(shape.names[target])): float(share)
        for source, target, share in zip(shape.stream_source, shape.stream_target, shape.stream_share, strict=True)
    }
