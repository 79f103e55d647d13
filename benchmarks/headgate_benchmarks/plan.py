"""``headgate bench plan``: the quality of plans, the time to make them, and the gain from adapting them.

DYN's experiments on Linear Road, with the paper's figures beside ours where it prints them. Part ``static`` is
Table 2, ``adapted`` Fig. 6 (rates from 10 to 2,000, 12 hours, machines and rates that vary), ``scale`` Fig. 7(a) and
(b) and a random dataflow of 200 tasks × 3 alternates at 100,000 messages a second, ``alternates`` Fig. 7(c). What could
be achieved is counted from what comes in; in Table 2 also with what waits (``waiting``). Times are CPU seconds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.plan_plots import plot
from headgate_benchmarks.study import Conclusion, Measured, Progress, Row, Study

if TYPE_CHECKING:
    from headgate.planning.plan import Plan
    from headgate.planning.problem import Problem
    from headgate.simulation.setting import Setting

__all__ = ["PAPER_TABLE_2", "PLAN"]

PAPER_TABLE_2: Mapping[str, tuple[float, float, float, float, float]] = {
    "br": (0.67, 0.80, 0.68, 0.59, 0.44),
    "ga": (0.65, 0.79, 0.67, 0.48, 0.37),
    "sh": (0.45, 0.81, 0.60, 0.40, 0.29),
    "ce": (0.58, 0.81, 0.66, 0.42, 0.31),
}
"""Profit, then relative throughput with neither varying, machines, rates, and both (DYN, Table 2; 50 messages/s)."""

CASES = {"neither": (False, False), "machines": (True, False), "rates": (False, True), "both": (True, True)}
POLICIES = ("exact", "ga", "ce", "sh", "ds2", "flink", "cpu", "static-peak")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of rates to plan for, the last and the last but three are compared; exhaustive search does the lowest only."""

    rates: tuple[float, ...] = (10.0, 50.0, 200.0, 1_000.0, 2_000.0)
    planned: tuple[float, ...] = (5.0, 10.0, 20.0, 50.0, 200.0, 1_000.0, 2_000.0, 4_000.0, 8_000.0)
    exhaustive: float = 20.0
    hours: float = 12.0
    seeds: int = 3
    limit_s: float = 60.0
    random_tasks: int = 200
    random_rate: float = 100_000.0


def _problem(rate: float) -> Problem:
    from headgate.model.cluster.catalogues import catalogue
    from headgate.planning.problem import Problem
    from headgate_benchmarks.dynamic import linear_road

    return Problem.of(linear_road(rate), catalogue("ec2-2013"), {"reports": rate, "weather": rate / 100})


def _setting(rate: float, seed: int, sizes: Sizes, machines: bool = True, rates: bool = True) -> Setting:
    from headgate.simulation.rates import ArrivalRate, Constant, RandomWalk
    from headgate.simulation.variability import STEADY
    from headgate_benchmarks.dynamic import linear_road, varying_setting

    coming: dict[str, ArrivalRate] = {
        "reports": RandomWalk(rate) if rates else Constant(rate),
        "weather": Constant(rate / 100),
    }
    setting = replace(varying_setting(linear_road(rate), coming, sizes.hours, 120.0, seed), counts_queues=False)
    return setting if machines else replace(setting, pool=STEADY)


def _planned(problem: Problem, name: str, limit_s: float) -> Plan:
    from headgate.planning.plan import Plan
    from headgate.planning.planners import make_planner

    answer = make_planner(name, limit_s).plan(problem)
    assert isinstance(answer, Plan)
    return answer


def _static(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Table 2: deployed once, under four kinds of variability."""
    from headgate.simulation.policies import Deployed
    from headgate.simulation.simulator import simulate

    def omega(plan: Plan, case: str, waiting: bool) -> float:
        worlds = [_setting(50.0, seed + turn, sizes, *CASES[case]) for turn in range(sizes.seeds)]
        runs = [simulate(replace(world, counts_queues=waiting), Deployed(plan.deployment)) for world in worlds]
        return statistics.mean(float(run.omega.mean()) for run in runs)

    def trials(name: str) -> Iterator[Row]:
        plan = _planned(_problem(50.0), name, min(30.0, sizes.limit_s))
        yield {
            "planner": name,
            "theta": plan.theta,
            "cost_per_h": plan.cost_per_h,
            "omega": {case: omega(plan, case, waiting=False) for case in CASES},
            "omega_waiting": {case: omega(plan, case, waiting=True) for case in CASES},
        }

    def conclude(rows: Sequence[Row]) -> Conclusion:
        conclusion = Conclusion()
        for row in rows:
            start = f"static_{row['planner']}"
            for case in CASES:
                conclusion.figures[f"{start}_omega_{case}"] = row["omega"][case]
                conclusion.figures[f"{start}_omega_{case}_waiting"] = row["omega_waiting"][case]
            conclusion.figures[f"{start}_theta"] = row["theta"]
        return conclusion

    measured = Study("static", trials, conclude).run(("exact", "ga", "sh", "ce"), progress)
    return measured | Measured({}, {"paper_table_2": {key: list(row) for key, row in PAPER_TABLE_2.items()}})


def _adapted(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Fig. 6: with adaptation, machines and rates varying, at growing rates; deployed once beside it."""
    from headgate.simulation.policies import Deployed, make_policy
    from headgate.simulation.simulator import simulate

    def trials(rate: float) -> Iterator[Row]:
        setting = _setting(rate, seed, sizes)
        for name in ("exact", "ce", "sh"):
            plan = _planned(_problem(rate), name, min(10.0, sizes.limit_s))
            omega = float(simulate(setting, Deployed(plan.deployment)).omega.mean())
            yield {"policy": f"static {name}", "rate": rate, "omega": omega, "theta": plan.theta}
        for policy in POLICIES:
            progress(f"adapted, {rate:g} messages/s, {policy}")
            began = time.process_time()
            seen = simulate(setting, make_policy(policy, setting)).summary()
            measures = ("omega", "within", "gamma", "cost", "theta", "changes_per_day", "core_hours")
            row = {measure: getattr(seen, measure) for measure in measures}
            yield {"policy": policy, "rate": rate, **row, "cpu_s": time.process_time() - began}

    return Study("adapted", trials, _conclude_adapted).run(sizes.rates, progress)


def _conclude_adapted(rows: Sequence[Row]) -> Conclusion:
    at = {(row["policy"], row["rate"]): row for row in rows}
    rates = list(dict.fromkeys(row["rate"] for row in rows))
    figures: dict[str, Any] = {}
    for name in ("exact", "ga", "ce"):
        figures[f"adapted_{name}_omega_min"] = min(at[name, rate]["omega"] for rate in rates)
    for name in ("ce", "ga"):
        over = (at["exact", rate]["theta"] - at[name, rate]["theta"] for rate in rates)
        figures[f"adapted_exact_over_{name}_min"] = min(over)
    for name in ("exact", "ce", "sh", "ga"):
        figures[f"adapted_{name}_theta_50"] = at[name, 50.0]["theta"]
    return Conclusion(figures)


def _scale(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Fig. 7(a) and (b): time and cores; the gap; and a large random dataflow."""
    from headgate.planning.plan import Plan
    from headgate.planning.planners import make_planner

    def trials(rate: float) -> Iterator[Row]:
        problem = _problem(rate)
        for name in ("exact", "ce", "sh", "ga", *(("br",) if rate <= sizes.exhaustive else ())):
            progress(f"planning, {rate:g} messages/s, {name}")
            took = []
            for _ in range(1 if name in ("ga", "br") else 3):
                began = time.process_time()
                plan = make_planner(name, sizes.limit_s).plan(problem)
                took.append(time.process_time() - began)
            if isinstance(plan, Plan):
                row = {"cpu_s": statistics.median(took), "cores": sum(plan.cores.values())}
                yield {"planner": name, "rate": rate, **row, "theta": plan.theta, "gap": plan.gap}

    def conclude(rows: Sequence[Row]) -> Conclusion:
        most = {row["planner"]: row for row in rows if row["rate"] == sizes.planned[-1]}
        fewer = next(row for row in rows if (row["planner"], row["rate"]) == ("ce", sizes.planned[-4]))
        return Conclusion(
            {
                "exact_gap_8000": most["exact"]["gap"],
                **{f"{name}_s_8000": most[name]["cpu_s"] for name in ("exact", "ce", "sh", "ga")},
                "ce_growth": most["ce"]["cpu_s"] / fewer["cpu_s"] / (most["ce"]["rate"] / fewer["rate"]),
                "exact_cores_8000": most["exact"]["cores"],
                "sh_cores_8000": most["sh"]["cores"],
            }
        )

    return Study("scale", trials, conclude).run(sizes.planned, progress) | _random(seed, progress, sizes)


def _random(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    from headgate.model.cluster.catalogues import catalogue
    from headgate.planning.problem import Problem
    from headgate_benchmarks.random_dataflows import random_dataflow, random_rates

    def trials(turn: int) -> Iterator[Row]:
        flow = random_dataflow(seed + turn, sizes.random_tasks, 3, sizes.random_rate)
        problem = Problem.of(flow, catalogue("ec2-2013"), random_rates(flow, sizes.random_rate))
        for name in ("ce", "sh", "exact"):
            progress(f"{sizes.random_tasks} tasks x 3 alternates, {name}")
            began = time.perf_counter()
            plan = _planned(problem, name, min(30.0, sizes.limit_s))
            row = {"wall_s": time.perf_counter() - began, "theta": plan.theta, "gap": plan.gap}
            yield {"seed": seed + turn, "planner": name, **row, "cores": sum(plan.cores.values())}

    def conclude(rows: Sequence[Row]) -> Conclusion:
        def most(planner: str, measure: str) -> float:
            return float(max(row[measure] for row in rows if row["planner"] == planner))

        return Conclusion(
            {
                "random_exact_gap_max": most("exact", "gap"),
                "random_exact_s_max": most("exact", "wall_s"),
                "random_ce_s_max": most("ce", "wall_s"),
            }
        )

    return Study("random", trials, conclude).run(range(2), progress)


def _alternates(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Fig. 7(c): what the same policies cost with only the best alternates."""
    from headgate.simulation.policies import make_policy
    from headgate.simulation.simulator import simulate

    def trials(rate: float) -> Iterator[Row]:
        setting = _setting(rate, seed, sizes)
        best_only = replace(setting, dataflow=_problem(rate).without_choice().dataflow)
        for policy in ("ce", "sh"):
            progress(f"alternates, {rate:g} messages/s, {policy}")
            cost, fixed = (simulate(each, make_policy(policy, each)).summary().cost for each in (setting, best_only))
            yield {"policy": policy, "rate": rate, "cost": cost, "cost_without": fixed, "saved": 1 - cost / fixed}

    def conclude(rows: Sequence[Row]) -> Conclusion:
        return Conclusion(
            {
                f"alternates_{policy}_saved_{end}": pick(row["saved"] for row in rows if row["policy"] == policy)
                for policy in ("ce", "sh")
                for end, pick in (("min", min), ("max", max))
            }
        )

    return Study("alternates", trials, conclude).run(sizes.rates, progress)


PLAN = Benchmark(
    "plan",
    "The quality of plans, the time to make them, and the gain from adapting them.",
    {"static": _static, "adapted": _adapted, "scale": _scale, "alternates": _alternates},
    Sizes(),
    Sizes((50.0,), (5.0, 10.0, 20.0, 50.0), 5.0, 0.5, 1, 1.0, 20, 200.0),
    "static_*_theta static_*_omega_both static_*_omega_neither_waiting adapted_exact_omega_min adapted_ga_omega_min "
    "adapted_ce_omega_min adapted_exact_over_ce_min adapted_exact_over_ga_min adapted_*_theta_50 exact_gap_8000 "
    "exact_s_8000 ce_s_8000 sh_s_8000 ga_s_8000 ce_growth exact_cores_8000 sh_cores_8000 random_exact_gap_max "
    "random_exact_s_max random_ce_s_max alternates_ce_saved_min alternates_ce_saved_max alternates_sh_saved_*",
    plot,
)
