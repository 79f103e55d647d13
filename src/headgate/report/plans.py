"""Plans as a picture: what they cost against what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.planning.plan import Plan
from headgate.planning.problem import Problem
from headgate.report.figures import SHADES, figure_bytes

__all__ = ["draw_plans"]

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def draw_plans(problem: Problem, plans: Sequence[Plan], front: Sequence[Plan], ending: str) -> bytes:
    """The Pareto front, the planners' plans, and the line on which the dataflow just pays."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        costs = [each.cost_per_h for each in (*plans, *front)]
        low, high = min(costs), max(costs)
        margin = 0.12 * max(high - low, 0.02 * high, 1e-9)
        axes.set_xlim(low - margin, high + 2 * margin)
        if len(front) > 1:
            axes.step(
                [each.cost_per_h for each in front],
                [each.gamma for each in front],
                where="post",
                color="#94a3b8",
                linewidth=1.2,
                marker=".",
                label="Pareto front",
                zorder=1,
            )
        even = problem.break_even
        if even is not None and even.sigma > 0:
            across = [low - margin, high + 2 * margin]
            pays = [even.value_max + even.sigma * (cost - even.cost_at_max) for cost in across]
            axes.plot(across, pays, ":", color="#475569", linewidth=1, label="just pays (Θ = 0)", zorder=0)
        for place, plan in enumerate(plans):
            message = f"{plan.planner}: Θ = {plan.theta:.3f}"
            mark = MARKS[place % len(MARKS)]
            axes.plot(plan.cost_per_h, plan.gamma, mark, color=SHADES[place % len(SHADES)], label=message, markersize=8)
        values = [each.gamma for each in (*plans, *front)]
        spread = max(max(values) - min(values), 0.02)
        rate = f"{sum(problem.rates.values()):,.6g} messages/s"
        axes.set_title(f"{problem.dataflow.name}: {rate} on {problem.cloud.name}, Ω ≥ {problem.throughput_min:g}")
        axes.set(xlabel=f"cost ({problem.cloud.currency} an hour)", ylabel="value Γ")
        axes.set_ylim(min(values) - 0.25 * spread, max(values) + 0.15 * spread)
        axes.grid(True)
        axes.legend(loc="lower right")

    return figure_bytes(draw, ending, (7.5, 4.6))
