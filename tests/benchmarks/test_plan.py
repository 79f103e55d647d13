"""``headgate bench plan``: what its parts measure and draw, on rates that take a moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headgate.model.cluster.catalogues import catalogue
from headgate.planning.exact import Exact
from headgate.planning.greedy import Centralised
from headgate.planning.plan import Plan
from headgate.planning.problem import Problem
from headgate_benchmarks.plan import PLAN
from headgate_benchmarks.random_dataflows import random_dataflow, random_rates


def test_alternates_save_money(tmp_path: Path) -> None:
    measured = PLAN.parts["alternates"](1, lambda _: None, replace(PLAN.long, rates=(50.0,)))
    assert 0.05 < measured.figures["alternates_ce_saved_min"] < 0.4
    assert PLAN.plot is not None
    assert [path.name for path in PLAN.plot(measured, tmp_path)] == ["plan-fig7.png"]


def test_deployed_once_none_is_above_the_optimum(tmp_path: Path) -> None:
    measured = PLAN.parts["static"](1, lambda _: None, replace(PLAN.long, seeds=1))
    figures = measured.figures
    assert all(figures["static_exact_theta"] >= figures[f"static_{name}_theta"] for name in ("ga", "ce", "sh"))
    assert all(figures[f"static_{name}_omega_neither"] >= 0.8 for name in ("exact", "ga", "ce", "sh"))
    assert figures["static_exact_omega_both"] < 0.8
    assert PLAN.plot is not None
    assert [path.name for path in PLAN.plot(measured, tmp_path)] == ["plan-table2.png"]


def test_a_random_dataflow_is_planned_with_a_bound() -> None:
    flow = random_dataflow(1, 40, 3, 2_000.0)
    problem = Problem.of(flow, catalogue("ec2-2013"), random_rates(flow, 2_000.0))
    best, quick = Exact(time_limit_s=1.5).plan(problem), Centralised().plan(problem)
    assert isinstance(best, Plan)
    assert isinstance(quick, Plan)
    assert best.gap is not None
    assert best.gap < 0.05
    assert quick.theta <= best.theta


@pytest.mark.slow
def test_200_tasks_at_100_000_messages_are_within_two_hundredths() -> None:
    flow = random_dataflow(1, 200, 3, 100_000.0)
    problem = Problem.of(flow, catalogue("ec2-2013"), random_rates(flow, 100_000.0))
    best, quick = Exact(time_limit_s=30.0).plan(problem), Centralised().plan(problem)
    assert isinstance(best, Plan)
    assert isinstance(quick, Plan)
    assert best.gap is not None
    assert best.gap <= 0.02
    assert best.took_s < 35
    assert quick.took_s < 5
    assert quick.theta <= best.theta


@pytest.mark.slow
def test_the_optimum_with_change_costs_is_no_worse_than_ce() -> None:
    measured = PLAN.parts["adapted"](1, lambda _: None, PLAN.long)
    assert measured.figures["adapted_exact_omega_min"] >= 0.8
    assert measured.figures["adapted_exact_over_ce_min"] >= 0
    assert measured.figures["adapted_exact_over_ga_min"] >= 0
