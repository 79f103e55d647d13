"""Random planning problems that stay small, and a plan as the simulator sees it."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import strategies as st

from headgate.documents import parse
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.model.dataflow import Dataflow
from headgate.planning.plan import Plan
from headgate.planning.problem import Problem
from headgate.simulation.policies import Deployed
from headgate.simulation.rates import Constant
from headgate.simulation.run import Run
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import simulate


def _eighths(low: int, high: int) -> st.SearchStrategy[float]:
    """Numbers that are sums of powers of two, so that rounding decides nothing."""
    return st.integers(low, high).map(lambda eighths: eighths / 8)


@st.composite
def dataflows(draw: st.DrawFn, most: int = 5) -> Dataflow:
    """Tasks in a line of which each reads one or two before it, with up to three alternates."""
    count = draw(st.integers(1, most))
    tasks = []
    for place in range(count):
        ways = [
            {
                "name": f"way{way}",
                "type": "opaque",
                "config": {"label": f"{place}-{way}"},
                "value": draw(_eighths(3, 8)),
                "cost_s": draw(_eighths(0, 10)),
                "selectivity": draw(_eighths(2, 12)),
            }
            for way in range(draw(st.integers(1, 3)))
        ]
        before = draw(st.lists(st.integers(0, place - 1), min_size=1, max_size=2, unique=True)) if place else []
        begins = place > 0 and draw(st.integers(0, 4)) == 0
        task = {"id": f"t{place}", "alternates": ways, "ports": {"inputs": ["in"], "outputs": ["out"]}}
        if before and not begins:
            task["inputs"] = [f"t{each}" for each in before]
        else:
            task["ports"] = {"outputs": ["out"]}
        tasks.append(task)
    best = draw(_eighths(4, 40))
    level = {
        "throughput_min": draw(st.sampled_from([0.5, 0.8, 0.9, 1.0])),
        "break_even_at_best_per_h": best,
        "break_even_at_worst_per_h": best / 2,
    }
    return parse_dict({"name": "random", "service_level": level, "tasks": tasks})


def parse_dict(document: dict[str, object]) -> Dataflow:
    import json

    return parse(json.dumps(document), "json").dataflow


@st.composite
def clouds(draw: st.DrawFn, narrow: bool = False) -> Cloud:
    """One to three classes; with ``narrow`` their network may be too small for a stream."""
    classes = []
    for place in range(draw(st.integers(1, 3))):
        cores, power = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1.0, 1.5, 2.0]))
        price = Decimal(draw(st.integers(3, 9))) * cores * Decimal(str(power)) / 100
        mbit = draw(st.sampled_from([0.0008, 0.002, 0.008])) if narrow else 1000.0
        classes.append(VmClass(f"c{place}", cores, power, mbit, price))
    return Cloud("random", tuple(classes))


@st.composite
def problems(draw: st.DrawFn, most: int = 5, narrow: bool = False, rate_most: int = 32) -> Problem:
    flow, cloud = draw(dataflows(most)), draw(clouds(narrow))
    fed = {stream.target for stream in flow.streams}
    rates = {str(task.id): draw(_eighths(0, rate_most)) for task in flow.tasks if task.id not in fed}
    return Problem.of(flow, cloud, rates)


def simulated(problem: Problem, plan: Plan, hours: float = 1.0) -> Run:
    """The plan on the simulator, which knows nothing of the planner's estimate."""
    setting = Setting(
        problem.dataflow,
        problem.cloud,
        {name: Constant(rate) for name, rate in problem.rates.items()},
        intervals=round(hours * 30),
        interval_s=120.0,
        message_bytes=problem.message_bytes,
        counts_queues=False,
    )
    return simulate(setting, Deployed(plan.deployment))


def check(problem: Problem, plan: Plan) -> None:
    """Every promise of a plan, as the simulator keeps it."""
    plan.deployment.check(problem.cloud)
    run = simulated(problem, plan)
    assert run.omega.min() >= problem.throughput_min - 1e-6
    assert np.isclose(run.gamma.mean(), plan.gamma)
    assert np.isclose(run.mu[-1, 0], plan.cost_per_h)
    # The network lets more through once messages wait for it; nothing else makes throughput grow.
    assert run.omega[0, 0] >= plan.omega - 1e-9
    if not any(each.bandwidth_mbit_per_s < 1 for each in problem.cloud.classes):
        assert np.allclose(run.omega, plan.omega, atol=1e-9)
    assert np.isclose(problem.theta(run.gamma.mean(), run.mu[-1, 0]), plan.theta)
    if problem.budget_per_h is not None:
        assert plan.cost_per_h <= float(problem.budget_per_h) + 1e-9
    if problem.cores_max is not None:
        assert sum(plan.cores.values()) <= problem.cores_max
