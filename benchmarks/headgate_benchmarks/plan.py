"""``headgate bench plan``: how good plans are, how quickly they are made, and what adapting them brings.

The experiments of DYN on Linear Road, with the paper's figures beside ours where it prints them. Part ``static`` is
Table 2, ``adapted`` Fig. 6 (rates from 10 to 2,000, 12 hours, machines and rates that vary), ``scale`` Fig. 7(a) and
(b) and a random dataflow of 200 tasks × 3 alternates at 100,000 messages a second, ``alternates`` Fig. 7(c). What could
be achieved is counted from what comes in; in Table 2 also with what waits (``waiting``). Times are CPU seconds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.measured import Measured

if TYPE_CHECKING:
    from headgate.planning.plan import Answer
    from headgate.planning.problem import Problem
    from headgate.simulation.setting import Setting

__all__ = ["PAPER_TABLE_2", "PARTS", "run"]

Progress = Callable[[str], None]
Part = tuple[dict[str, Any], dict[str, Any]]

PAPER_TABLE_2: Mapping[str, tuple[float, float, float, float, float]] = {
    "br": (0.67, 0.80, 0.68, 0.59, 0.44),
    "ga": (0.65, 0.79, 0.67, 0.48, 0.37),
    "sh": (0.45, 0.81, 0.60, 0.40, 0.29),
    "ce": (0.58, 0.81, 0.66, 0.42, 0.31),
}
"""Profit, then relative throughput with neither varying, machines, rates, and both (DYN, Table 2; 50 messages/s)."""

CASES = {"neither": (False, False), "machines": (True, False), "rates": (False, True), "both": (True, True)}
RATES = (10.0, 50.0, 200.0, 1_000.0, 2_000.0)
SEEDS = 3
POLICIES = ("exact", "ga", "ce", "sh", "ds2", "flink", "cpu", "static-peak")


def run(seed: int, progress: Progress) -> Measured:
    """All parts."""
    figures: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    for part in (_static, _adapted, _scale, _alternates):
        found, raw = part(seed, progress)
        figures |= found
        samples |= raw
    return _measured(figures, samples)


def _measured(figures: dict[str, Any], samples: dict[str, Any]) -> Measured:
    rounded = {key: round(value, 5) if isinstance(value, float) else value for key, value in figures.items()}
    return Measured(rounded, samples)


def _alone(part: Callable[[int, Progress], Part]) -> Callable[[int, Progress], Measured]:
    return lambda seed, progress: _measured(*part(seed, progress))


def _problem(rate: float) -> Problem:
    from headgate.model.cluster.catalogues import catalogue
    from headgate.planning.problem import Problem
    from headgate_benchmarks.dynamic import linear_road

    return Problem.of(linear_road(rate), catalogue("ec2-2013"), {"reports": rate, "weather": rate / 100})


def _setting(rate: float, seed: int, machines: bool = True, rates: bool = True) -> Setting:
    from headgate.simulation.rates import ArrivalRate, Constant, RandomWalk
    from headgate.simulation.variability import STEADY
    from headgate_benchmarks.dynamic import linear_road, varying_setting

    coming: dict[str, ArrivalRate] = {
        "reports": RandomWalk(rate) if rates else Constant(rate),
        "weather": Constant(rate / 100),
    }
    setting = replace(varying_setting(linear_road(rate), coming, 12.0, 120.0, seed), counts_queues=False)
    return setting if machines else replace(setting, pool=STEADY)


def _timed(problem: Problem, name: str, limit_s: float) -> tuple[Answer, float]:
    from headgate.planning.planners import make_planner

    began = time.process_time()
    answer = make_planner(name, limit_s).plan(problem)
    return answer, time.process_time() - began


def _static(seed: int, progress: Progress) -> Part:
    """Table 2: deployed once, under four kinds of variability."""
    from headgate.planning.plan import Plan
    from headgate.simulation.policies import Deployed
    from headgate.simulation.simulator import simulate

    problem = _problem(50.0)
    figures: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    for name in ("exact", "ga", "sh", "ce"):
        progress(f"static, {name}")
        plan, _ = _timed(problem, name, 30.0)
        assert isinstance(plan, Plan)
        omega: dict[bool, dict[str, float]] = {False: {}, True: {}}
        for counted in omega:
            for case, (machines, rates) in CASES.items():
                worlds = [_setting(50.0, seed + turn, machines, rates) for turn in range(SEEDS)]
                seen = [
                    simulate(replace(world, counts_queues=counted), Deployed(plan.deployment)).omega.mean()
                    for world in worlds
                ]
                omega[counted][case] = float(statistics.mean(map(float, seen)))
                figures[f"static_{name}_omega_{case}{'_waiting' if counted else ''}"] = omega[counted][case]
        figures[f"static_{name}_theta"] = plan.theta
        row = {"theta": plan.theta, "cost_per_h": plan.cost_per_h}
        rows[name] = row | {"omega": omega[False], "omega_waiting": omega[True]}
    return figures, {"static": rows, "paper_table_2": {key: list(row) for key, row in PAPER_TABLE_2.items()}}


def _adapted(seed: int, progress: Progress) -> Part:
    """Fig. 6: with adaptation, machines and rates varying, at growing rates; deployed once beside it."""
    from headgate.planning.plan import Plan
    from headgate.planning.planners import make_planner
    from headgate.simulation.policies import Deployed, make_policy
    from headgate.simulation.simulator import simulate

    rows: list[dict[str, Any]] = []
    for rate in RATES:
        setting = _setting(rate, seed)
        for name in ("exact", "ce", "sh"):
            plan = make_planner(name, 10.0).plan(_problem(rate))
            assert isinstance(plan, Plan)
            omega = float(simulate(setting, Deployed(plan.deployment)).omega.mean())
            rows.append({"policy": f"static {name}", "rate": rate, "omega": omega, "theta": plan.theta})
        for policy in POLICIES:
            progress(f"adapted, {rate:g} messages/s, {policy}")
            began = time.process_time()
            seen = simulate(setting, make_policy(policy, setting)).summary()
            rows.append(
                {
                    "policy": policy,
                    "rate": rate,
                    "omega": seen.omega,
                    "within": seen.within,
                    "gamma": seen.gamma,
                    "cost": seen.cost,
                    "theta": seen.theta,
                    "changes_per_day": seen.changes_per_day,
                    "core_hours": seen.core_hours,
                    "cpu_s": time.process_time() - began,
                }
            )
    by_policy = {(row["policy"], row["rate"]): row for row in rows}
    figures: dict[str, Any] = {
        "adapted_exact_omega_min": min(by_policy["exact", rate]["omega"] for rate in RATES),
        "adapted_ga_omega_min": min(by_policy["ga", rate]["omega"] for rate in RATES),
        "adapted_ce_omega_min": min(by_policy["ce", rate]["omega"] for rate in RATES),
        "adapted_exact_over_ce_min": min(
            by_policy["exact", rate]["theta"] - by_policy["ce", rate]["theta"] for rate in RATES
        ),
        "adapted_exact_over_ga_min": min(
            by_policy["exact", rate]["theta"] - by_policy["ga", rate]["theta"] for rate in RATES
        ),
    }
    for name in ("exact", "ce", "sh", "ga"):
        figures[f"adapted_{name}_theta_50"] = by_policy[name, 50.0]["theta"]
    return figures, {"adapted": rows}


def _scale(seed: int, progress: Progress) -> Part:
    """Fig. 7(a) and (b): time and cores; the gap; and a large random dataflow."""
    from headgate.planning.plan import Plan

    rows: list[dict[str, Any]] = []
    for rate in (5.0, 10.0, 20.0, 50.0, 200.0, 1_000.0, 2_000.0, 4_000.0, 8_000.0):
        problem = _problem(rate)
        for name in ("exact", "ce", "sh", "ga", "br"):
            if name == "br" and rate > 20.0:
                continue
            progress(f"planning, {rate:g} messages/s, {name}")
            took = []
            for _ in range(1 if name in ("ga", "br") else 3):
                answer, cpu_s = _timed(problem, name, 60.0)
                took.append(cpu_s)
            if isinstance(answer, Plan):
                cores = sum(answer.cores.values())
                rows.append(
                    {
                        "planner": name,
                        "rate": rate,
                        "cpu_s": statistics.median(took),
                        "cores": cores,
                        "theta": answer.theta,
                        "gap": answer.gap,
                    }
                )
    at = {(row["planner"], row["rate"]): row for row in rows}
    figures: dict[str, Any] = {
        "exact_gap_8000": at["exact", 8_000.0]["gap"],
        "exact_s_8000": at["exact", 8_000.0]["cpu_s"],
        "ce_s_8000": at["ce", 8_000.0]["cpu_s"],
        "sh_s_8000": at["sh", 8_000.0]["cpu_s"],
        "ga_s_8000": at["ga", 8_000.0]["cpu_s"],
        "ce_growth": at["ce", 8_000.0]["cpu_s"] / at["ce", 1_000.0]["cpu_s"] / 8,
        "exact_cores_8000": at["exact", 8_000.0]["cores"],
        "sh_cores_8000": at["sh", 8_000.0]["cores"],
    }
    found, raw = _random(seed, progress)
    return figures | found, {"scale": rows} | raw


def _random(seed: int, progress: Progress) -> Part:
    from headgate.model.cluster.catalogues import catalogue
    from headgate.planning.plan import Plan
    from headgate.planning.planners import make_planner
    from headgate.planning.problem import Problem
    from headgate_benchmarks.random_dataflows import random_dataflow, random_rates

    rows: list[dict[str, Any]] = []
    for turn in range(2):
        flow = random_dataflow(seed + turn, 200, 3, 100_000.0)
        problem = Problem.of(flow, catalogue("ec2-2013"), random_rates(flow, 100_000.0))
        for name in ("ce", "sh", "exact"):
            progress(f"200 tasks x 3 alternates, {name}")
            began = time.perf_counter()
            answer = make_planner(name, 30.0).plan(problem)
            assert isinstance(answer, Plan)
            told = {"theta": answer.theta, "gap": answer.gap, "cores": sum(answer.cores.values())}
            rows.append({"seed": seed + turn, "planner": name, "wall_s": time.perf_counter() - began, **told})
    figures = {
        "random_exact_gap_max": max(row["gap"] for row in rows if row["planner"] == "exact"),
        "random_exact_s_max": max(row["wall_s"] for row in rows if row["planner"] == "exact"),
        "random_ce_s_max": max(row["wall_s"] for row in rows if row["planner"] == "ce"),
    }
    return figures, {"random": rows}


def _alternates(seed: int, progress: Progress) -> Part:
    """Fig. 7(c): what the same policies cost with the best alternates alone."""
    from headgate.simulation.policies import make_policy
    from headgate.simulation.simulator import simulate

    rows: list[dict[str, Any]] = []
    for rate in RATES:
        setting = _setting(rate, seed)
        alone = replace(setting, dataflow=_problem(rate).without_choice().dataflow)
        for policy in ("ce", "sh"):
            progress(f"alternates, {rate:g} messages/s, {policy}")
            cost, fixed = (simulate(each, make_policy(policy, each)).summary().cost for each in (setting, alone))
            row = {"policy": policy, "rate": rate, "cost": cost, "cost_without": fixed, "saved": 1 - cost / fixed}
            rows.append(row)
    figures = {
        f"alternates_{policy}_saved_{end}": pick(row["saved"] for row in rows if row["policy"] == policy)
        for policy in ("ce", "sh")
        for end, pick in (("min", min), ("max", max))
    }
    return figures, {"alternates": rows}


PARTS: Mapping[str, Callable[[int, Progress], Measured]] = {
    "static": _alone(_static),
    "adapted": _alone(_adapted),
    "scale": _alone(_scale),
    "alternates": _alone(_alternates),
}
