"""Strategies: what each runs, pauses, proxies and launches, on the paper's own example and on random sequences."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, PortName, TaskId
from headgate.model.strategy import StrategyName
from headgate.model.stream import Stream
from headgate.sharing.running import RunningSet
from headgate.sharing.strategies import GroupSteps, Units, deploy
from tests.sharing.sequences import operations
from tests.sharing.strategies import opaque


def dag(name: str, *edges: str) -> Dataflow:
    """A dataflow from edges such as ``AB``; a task is called and labelled by its letter."""
    letters = dict.fromkeys("".join(edges))
    streams = tuple(Stream(TaskId(a), PortName("out"), TaskId(b), PortName("in")) for a, b in map(tuple, edges))
    return Dataflow(DataflowName(name), tuple(opaque(letter, letter) for letter in letters), streams)


D1, D2, D3 = dag("D1", "AB", "BC", "CD"), dag("D2", "EF", "FG", "GH"), dag("D3", "AB", "EF", "BX", "FX", "XI")
"""Fig. 2 of SHARE."""


def played(strategy: StrategyName, *operations: Dataflow | str) -> tuple[Units, GroupSteps, RunningSet]:
    running, deployment, steps = RunningSet(), Units(), GroupSteps()
    for one in operations:
        running, change = running.submit(one) if isinstance(one, Dataflow) else running.withdraw(one)
        deployment, steps = deploy(strategy, deployment, change, running)
    return deployment, steps, running


def sizes(deployment: Units) -> list[tuple[int, int, int]]:
    return [(len(unit.active), len(unit.paused), len(unit.proxies)) for unit in deployment.groups.values()]


def test_submitting_d3_as_in_figures_2_and_5() -> None:
    assert sizes(played(StrategyName.NONE, D1, D2, D3)[0]) == [(4, 0, 0), (4, 0, 0), (6, 0, 0)]
    assert sizes(played(StrategyName.INCREMENTAL, D1, D2, D3)[0]) == [(4, 0, 0), (4, 0, 0), (2, 0, 2)]
    for strategy in (StrategyName.REPLACE, StrategyName.REPLACE_PRUNE):
        deployment, steps, _ = played(strategy, D1, D2, D3)
        assert sizes(deployment) == [(10, 0, 0)]
        assert (len(steps.stopped), len(steps.launched)) == (2, 1)
    deployment, steps, _ = played(StrategyName.HOT, D1, D2, D3)
    assert sizes(deployment) == [(10, 0, 0)]
    assert (steps.stopped, steps.launched, len(steps.joined)) == ((), (), 2)


def test_withdrawing_d2_as_in_figures_3_and_6() -> None:
    assert sizes(played(StrategyName.INCREMENTAL, D1, D2, D3, "D2")[0]) == [(4, 0, 0), (2, 2, 0), (2, 0, 2)]
    assert sizes(played(StrategyName.REPLACE, D1, D2, D3, "D2")[0]) == [(8, 2, 0)]
    deployment, steps, _ = played(StrategyName.REPLACE_PRUNE, D1, D2, D3, "D2")
    assert (sizes(deployment), len(steps.stopped), len(steps.launched)) == ([(8, 0, 0)], 1, 1)
    deployment, steps, _ = played(StrategyName.HOT, D1, D2, D3, "D2")
    assert (sizes(deployment), len(steps.left), steps.stopped, steps.launched) == ([(8, 0, 0)], 2, (), ())


def test_withdrawing_d3_parts_what_it_linked() -> None:
    for strategy in (StrategyName.REPLACE_PRUNE, StrategyName.HOT):
        assert sizes(played(strategy, D1, D2, D3, "D3")[0]) == [(4, 0, 0), (4, 0, 0)]


def test_what_was_paused_is_resumed_without_a_launch() -> None:
    for strategy in (StrategyName.INCREMENTAL, StrategyName.REPLACE):
        _, steps, _ = played(strategy, D1, D2, D3, "D2", D2)
        assert (steps.launched, steps.stopped, len(steps.resumed)) == ((), (), 2)


@pytest.mark.parametrize("strategy", StrategyName)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_after_any_sequence_what_should_run_runs(strategy: StrategyName, seed: int) -> None:
    running, deployment = RunningSet(), Units()
    for operation, flow in operations(random.Random(seed), 60):
        running, change = running.submit(flow) if operation == "submit" else running.withdraw(flow.name)
        deployment, steps = deploy(strategy, deployment, change, running)
        units = list(deployment.groups.values())
        at_work = [task for unit in units for task in unit.active]
        if strategy is StrategyName.NONE:
            assert len(units) == len(running.submitted)
            assert len(at_work) == sum(len(s.signatures) for s in running.submitted.as_dict().values())
            continue
        assert sorted(at_work) == sorted(running.tasks)
        assert all(not unit.paused & unit.active for unit in units)
        if strategy is not StrategyName.INCREMENTAL:
            assert all(not unit.proxies for unit in units)
        if strategy in (StrategyName.REPLACE_PRUNE, StrategyName.HOT):
            assert all(unit.active and not unit.paused for unit in units)
        if strategy is StrategyName.HOT:
            assert sum(len(unit.active) for unit in (*steps.launched, *steps.stopped)) + len(
                steps.joined | steps.left
            ) == len(change.own)
