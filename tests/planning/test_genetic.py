"""The genetic algorithm at runtime: both strands are those of what runs, and changes weigh more from generation on."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.model.cluster.catalogues import catalogue
from headgate.planning.estimate import estimate
from headgate.planning.genetic import Genetic, RunningDeployment, Strands
from headgate.planning.layout import Layout
from headgate.planning.problem import Problem
from headgate_benchmarks.dynamic import linear_road

CLOUD = catalogue("ec2-2013")


def _problem(rate: float) -> Problem:
    return Problem.of(linear_road(20.0), CLOUD, {"reports": rate, "weather": rate / 100})


def _running(problem: Problem, seed: int) -> RunningDeployment:
    """Some machines of any class with any tasks on them."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, len(CLOUD.classes), 12)
    placed = np.zeros((12, problem.tasks), dtype=np.int64)
    for row, each in enumerate(kind):
        for _ in range(int(rng.integers(0, CLOUD.classes[each].cores + 1))):
            placed[row, rng.integers(problem.tasks)] += 1
    return RunningDeployment(rng.integers(0, [len(ways) for ways in problem.shape.alternates]), kind, placed)


@pytest.mark.parametrize("seed", range(6))
def test_machines_that_run_keep_their_class_and_no_core_is_used_twice(seed: int) -> None:
    problem = _problem(20.0)
    running = _running(problem, seed)
    plan = Genetic(population=30, generations=25, seed=seed).redeployed(problem, running)
    assert plan.kind[:12].tolist() == running.kind.tolist()
    cores = np.array([each.cores for each in CLOUD.classes])
    assert (plan.placed.sum(axis=1) <= cores[plan.kind]).all()
    assert (plan.placed[12:].sum(axis=1) > 0).all()
    assert (plan.active < [len(ways) for ways in problem.shape.alternates]).all()


@pytest.mark.parametrize("seed", range(6))
def test_changes_are_counted_core_by_core(seed: int) -> None:
    """Against sums over what two deployments have; what runs now has none."""
    problem = _problem(20.0)
    running = _running(problem, seed)
    strands = Strands(problem, running)
    genes = strands.first(8, np.random.default_rng(seed))
    assert strands.changes(genes)[0] == 0.0
    for one in range(1, 8):
        moved = 0
        for machine, gene in enumerate(strands.machine_genes(genes)[one]):
            tasks = [t for t in gene[1 : 1 + CLOUD.classes[gene[0]].cores].tolist() if t >= 0]
            runs = running.placed[machine] if machine < 12 else np.zeros(problem.tasks, dtype=int)
            moved += sum(abs(tasks.count(task) - int(runs[task])) for task in range(problem.tasks))
        switched = sum(a != b for a, b in zip(genes[one], running.active, strict=False)) / problem.tasks
        assert strands.changes(genes)[one] == pytest.approx(moved / running.placed.sum() + switched)


def test_what_meets_the_throughput_stays_where_changes_weigh_enough() -> None:
    problem = _problem(20.0)
    first = Genetic(population=40, generations=60).plan(problem).deployment  # type: ignore[union-attr]
    layout = Layout.of(problem, first)
    kind, placed = np.repeat(layout.kind, layout.count), np.repeat(layout.placed, layout.count, axis=0)
    ways = [problem.shape.alternates[t].index(first.alternates.get(str(n), problem.shape.alternates[t][0]))
            for t, n in enumerate(problem.shape.names)]  # fmt: skip
    running = RunningDeployment(np.array(ways), kind, placed)
    assert estimate(problem, running.active, layout).meets(problem)
    stays = Genetic(population=40, generations=40, alpha_changes=10.0).redeployed(problem, running)
    assert (stays.placed.tolist(), stays.active.tolist()) == (placed.tolist(), ways)
    busier = _problem(60.0)
    more = Genetic(population=40, generations=40, alpha_changes=10.0).redeployed(busier, running)
    assert more.placed.sum() > placed.sum(), "falling short weighs more than changing"
