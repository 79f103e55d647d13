"""Explains a plan: why these alternates, cores and machines."""

from __future__ import annotations

import time
from decimal import Decimal

import numpy as np

from headgate.model.arrays import Ints
from headgate.planning.estimate import PlanEstimate
from headgate.planning.layout import Layout
from headgate.planning.plan import Answer, NoPlan, Plan
from headgate.planning.problem import SLACK, Problem

__all__ = ["broken_limit", "explained", "planned"]

MOST_SENTENCES = 40
"""The most tasks that are explained one by one; larger dataflows are summarised."""


def planned(
    name: str,
    problem: Problem,
    active: Ints,
    layout: Layout,
    estimated: PlanEstimate,
    began: float,
    bound: float | None = None,
    first: tuple[str, ...] = (),
) -> Answer:
    """The plan, or the limit that it violates."""
    took_s = time.perf_counter() - began
    broken = broken_limit(problem, layout, estimated)
    if broken is not None:
        return NoPlan(name, broken[0], broken[1], took_s=took_s)
    return Plan(
        name,
        layout.deployment(problem, active),
        estimated.omega,
        estimated.gamma,
        estimated.cost_per_h,
        estimated.theta,
        took_s,
        bound,
        first + explained(problem, active, layout, estimated),
    )


def broken_limit(problem: Problem, layout: Layout, estimated: PlanEstimate) -> tuple[str, str] | None:
    """The first requirement that the layout does not meet: its condition and a sentence."""
    if not estimated.meets(problem):
        message = f"relative throughput would be {estimated.omega:.3f}, and {problem.throughput_min:g} is required"
        held = np.flatnonzero(estimated.held_back > 0)
        if len(held):
            worst = int(held[np.argmax(estimated.held_back[held])])
            ends = (problem.shape.stream_source[worst], problem.shape.stream_target[worst])
            source, target = (problem.shape.names[int(place)] for place in ends)
            message += (
                f": the network cannot carry {estimated.held_back[worst]:,.0f} messages/s from '{source}' to '{target}'"
            )
            return "NO_BANDWIDTH", message
        return "NO_THROUGHPUT", message
    cores = int(layout.cores.sum())
    if problem.cores_max is not None and cores > problem.cores_max:
        return "NO_CORES", f"needs {cores:,} cores, and the limit is {problem.cores_max:,}"
    if problem.budget_per_h is not None and estimated.cost_per_h > float(problem.budget_per_h) * (1 + SLACK):
        currency = problem.cloud.currency
        return "NO_BUDGET", (
            f"costs {estimated.cost_per_h:,.2f} {currency} an hour, and the budget is {problem.budget_per_h} {currency}"
        )
    return None


def explained(problem: Problem, active: Ints, layout: Layout, estimated: PlanEstimate) -> tuple[str, ...]:
    """Sentences about alternates, cores and machines."""
    return (
        *_alternates(problem, active, estimated),
        *_cores(problem, layout, estimated),
        *_machines(problem, layout, estimated),
    )


def _alternates(problem: Problem, active: Ints, estimated: PlanEstimate) -> list[str]:
    shape = problem.shape
    price = float(min(each.price_per_power_h for each in problem.cloud.classes))
    needed = problem.needed_power(active)
    sentences = []
    for task, ways in enumerate(shape.alternates):
        if len(ways) < 2:
            continue
        chosen, best = int(active[task]), int(problem.best[task])
        name = f"'{shape.names[task]}' uses '{ways[chosen]}'"
        if chosen == best:
            rivals = [j for j in range(len(ways)) if j != best]
            sentences.append(f"{name}, its best{_saved(problem, active, task, rivals, needed, price)}")
            continue
        other = active.copy()
        other[task] = best
        more = float((problem.needed_power(other) - needed).sum()) * price * problem.throughput_min
        worth = (shape.value[task, best] - shape.value[task, chosen]) / problem.tasks
        sentences.append(
            f"{name}: '{ways[best]}' adds {worth:.3f} to the value and about {more:,.2f} an hour to the cost, "
            f"which is {problem.sigma * more:.3f} in value"
        )
    if len(sentences) > MOST_SENTENCES:
        lowered = int((active != problem.best).sum())
        return [
            f"{lowered} of {problem.tasks} tasks do not use their best alternate; the value is {estimated.gamma:.3f}"
        ]
    return sentences


def _saved(problem: Problem, active: Ints, task: int, rivals: list[int], needed: object, price: float) -> str:
    """What the next best alternate would save and lose."""
    shape = problem.shape
    options = []
    for rival in rivals:
        other = active.copy()
        other[task] = rival
        saved = float((np.asarray(needed) - problem.needed_power(other)).sum()) * price * problem.throughput_min
        lost = (shape.value[task, active[task]] - shape.value[task, rival]) / problem.tasks
        options.append((problem.sigma * saved - lost, rival, saved, lost))
    _, rival, saved, lost = max(options)
    return f": '{shape.alternates[task][rival]}' saves about {saved:,.2f} an hour and loses {lost:.3f} of value"


def _cores(problem: Problem, layout: Layout, estimated: PlanEstimate) -> list[str]:
    shape, cores, share = problem.shape, layout.cores, estimated.relative
    short = [task for task in range(problem.tasks) if share[task] < 1 - 1e-6]
    if problem.tasks > MOST_SENTENCES:
        return [f"{int(cores.sum()):,} cores; {len(short)} tasks do not keep up with all that is offered to them"]
    sentences = []
    for task in range(problem.tasks):
        if cores[task] == 0:
            continue
        does = "keeps up with" if task not in short else f"processes {share[task]:.0%} of"
        count = f"{cores[task]:,} core{'s' if cores[task] > 1 else ''}"
        sentences.append(f"'{shape.names[task]}' has {count} and {does} {estimated.offered[task]:,.4g} messages/s")
    return sentences


def _machines(problem: Problem, layout: Layout, estimated: PlanEstimate) -> list[str]:
    parts = []
    for kind, each in enumerate(problem.cloud.classes):
        count = int(layout.count[layout.kind == kind].sum())
        if count:
            parts.append(f"{count:,} {each.name}")
    if not parts:
        return ["no machine is needed"]
    held = sum(int(layout.count[g]) * problem.cloud.classes[layout.kind[g]].cores for g in range(len(layout.count)))
    free = held - int(layout.cores.sum())
    cost = Decimal(f"{estimated.cost_per_h:.4f}").normalize()
    return [f"{', '.join(parts)} for {cost:f} {problem.cloud.currency} an hour; {free:,} of {held:,} cores are free"]
