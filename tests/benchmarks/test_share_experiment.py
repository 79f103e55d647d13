"""The simulated experiment: collections of the paper's numbers, its traces, and what must be so whatever is drawn."""

from __future__ import annotations

import random
from fractions import Fraction
from statistics import fmean, median

import pytest

from headgate.model.strategy import StrategyName
from headgate.sharing.change import Operation
from headgate_benchmarks.checkout import shared_data
from headgate_benchmarks.share.collections import Collection, opmw_like, real_collections, riotbench_like
from headgate_benchmarks.share.experiment import TRACES, random_walk, sequential, simulate, storm


@pytest.fixture(scope="module")
def riot() -> Collection:
    return riotbench_like(1)


@pytest.mark.parametrize("seed", [1, 2])
def test_collections_have_the_numbers_of_the_papers_table_2(seed: int) -> None:
    riot, opmw = riotbench_like(seed).facts(), opmw_like(seed).facts()
    assert {key: riot[key] for key in ("dataflows", "tasks", "largest", "kinds", "sources")} == {
        **{"dataflows": 21, "tasks": 138, "largest": 8, "kinds": 16, "sources": 3}
    }
    assert {key: opmw[key] for key in ("dataflows", "tasks", "largest", "sources")} == {
        **{"dataflows": 65, "tasks": 828, "largest": 34, "sources": 82}
    }
    assert abs(opmw["kinds"] - 291) <= 1
    assert abs(riot["merged"] - 75) <= 5
    assert abs(opmw["merged"] - 467) <= 15


def test_a_seed_gives_the_same_collection_and_another_gives_another(riot: Collection) -> None:
    assert riotbench_like(1).dataflows == riot.dataflows
    assert riotbench_like(2).dataflows != riot.dataflows


def test_traces(riot: Collection) -> None:
    trace = sequential(riot, random.Random(1))
    assert [step.operation for step in trace.steps] == [Operation.SUBMIT] * 21 + [Operation.WITHDRAW] * 21
    walk = random_walk(riot, random.Random(1))
    assert (walk.first, walk.last) == (15, 115)
    assert len(walk.steps) == 115 + sum(1 if s.operation is Operation.SUBMIT else -1 for s in walk.steps[:115])
    assert [step.operation for step in walk.steps[:15]] == [Operation.SUBMIT] * 15


def test_the_times_have_the_papers_figures() -> None:
    draw, times = random.Random(1), storm()
    launches = [times.launch_s(draw) for _ in range(20_000)]
    assert (min(launches) >= 30, max(launches) <= 849) == (True, True)
    assert median(launches) == pytest.approx(40.4, rel=0.02)
    assert fmean(launches) == pytest.approx(64.5, rel=0.05)
    assert median(times.stop_s(draw) for _ in range(20_000)) == pytest.approx(9.4, rel=0.02)


@pytest.mark.parametrize("name", TRACES)
def test_sharing_saves_tasks_and_pruning_saves_workers(name: str, riot: Collection) -> None:
    trace = TRACES[name](riot, random.Random(3))
    runs = {strategy: simulate(trace, strategy, random.Random(1)) for strategy in StrategyName}
    separate = runs[StrategyName.NONE]
    assert all(sample.active_tasks == sample.submitted_tasks for sample in separate.samples)
    for strategy in (StrategyName.INCREMENTAL, StrategyName.REPLACE, StrategyName.REPLACE_PRUNE, StrategyName.HOT):
        for shared, unshared in zip(runs[strategy].samples, separate.samples, strict=True):
            assert shared.active_tasks <= unshared.active_tasks
    pruned, hot = runs[StrategyName.REPLACE_PRUNE], runs[StrategyName.HOT]
    assert [s.workers for s in pruned.samples] == [s.workers for s in hot.samples]
    assert pruned.cost < separate.cost
    assert hot.mean_operation_s < pruned.mean_operation_s
    for strategy in (StrategyName.NONE, StrategyName.REPLACE_PRUNE, StrategyName.HOT):
        assert (runs[strategy].samples[-1].workers, runs[strategy].samples[-1].cost) == (0, Fraction())
    assert runs[StrategyName.REPLACE].samples[-1].workers > 0  # the paused tasks are still there
    assert runs[StrategyName.REPLACE].samples[-1].idle == runs[StrategyName.REPLACE].samples[-1].cost


def test_a_run_depends_on_its_seed_alone(riot: Collection) -> None:
    trace = sequential(riot, random.Random(1))
    one, two = (simulate(trace, StrategyName.HOT, random.Random(5)) for _ in range(2))
    assert one.samples == two.samples


def test_real_dags_where_they_are_at_hand() -> None:
    folder = shared_data()
    if folder is None:
        pytest.skip("no folder of shared data")
    facts = {each.name: each.facts() for each in real_collections(folder)}
    if "wings" in facts:
        assert (facts["wings"]["tasks"], facts["wings"]["merged"]) == (903, 669)
