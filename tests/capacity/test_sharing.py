"""Fragments in shared pools: what holds for any of them, and where they are the papers' model."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.capacity.filling import water_filling
from headgate.capacity.power import stage_power
from headgate.capacity.sharing import Sharing
from headgate.errors import BadValue, InputError
from headgate.model.capacity import FragmentLoad, Pool
from headgate.simulation.rates import Constant
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator
from tests.capacity.pools import fragment, pooled, started
from tests.simulation import invariants
from tests.simulation.test_properties import clouds, flows
from tests.simulation.worlds import cloud, dataflow, each_alone, setting

amounts = st.lists(st.floats(0.0, 10.0), min_size=1, max_size=6)


@given(st.floats(0.0, 20.0), amounts, st.data())
def test_water_filling_gives_all_there_is_and_nobody_more_than_is_wanted(
    total: float, wanted: list[float], data: Any
) -> None:
    weight = np.array(data.draw(st.lists(st.floats(0.1, 5.0), min_size=len(wanted), max_size=len(wanted))))
    need = np.array(wanted)
    shares = water_filling(total, need, weight)
    assert (shares >= 0).all()
    assert (shares <= need + 1e-9).all()
    assert shares.sum() == pytest.approx(min(total, need.sum()), abs=1e-9)
    # Who wants more than is given has the highest level, by weight.
    short = shares < need - 1e-6
    if short.any():
        level = (shares / weight)[short]
        assert level == pytest.approx(level[0])
        assert (shares / weight <= level[0] + 1e-6).all()


@given(st.integers(1, 60), st.lists(st.sampled_from([0.15, 0.5, 1.0, 2.0]), min_size=1, max_size=12))
def test_a_stage_uses_no_more_than_its_cores_have(partitions: int, speeds: list[float]) -> None:
    power = stage_power(partitions, np.array(speeds))
    assert 0 < power <= sum(speeds) * (1 + 1e-9)
    assert power >= min(speeds) * partitions / np.ceil(partitions / len(speeds)) * (1 - 1e-9)
    assert stage_power(1, np.array(speeds)) == pytest.approx(max(speeds))


def test_a_slow_machine_can_make_a_stage_slower() -> None:
    assert stage_power(5, np.array([1, 1, 0.15, 0.15, 0.15])) < stage_power(5, np.array([1.0, 1.0]))


@st.composite
def shared(draw: Any) -> Setting:
    """A random graph cut into fragments, each of consecutive tasks, in one or two pools."""
    flow = draw(flows())
    names = [task.id for task in flow.tasks]
    cuts = sorted({0, len(names), *draw(st.sets(st.integers(0, len(names)), max_size=4))})
    pools = [Pool(name, (), draw(st.sampled_from([0.0, 2.0]))) for name in ("one", "two")]
    loads = []
    for begin, end in pairwise(cuts):
        more = {"fixed_s": 0.2, "task_s": 0.01, "weight": draw(st.sampled_from([1.0, 3.0]))}
        parts, pool = draw(st.sampled_from([None, 1, 4, 9])), draw(st.sampled_from(["one", "two"]))
        loads.append(fragment(f"f{begin}", *names[begin:end], partitions=parts, pool=pool, **more))
    used = tuple(pool for pool in pools if pool.name in {load.pool for load in loads})
    made = setting(flow, draw(st.sampled_from([0.5, 3.0])), sharing=Sharing(tuple(loads), used))
    return replace(made, cloud=cloud(), counts_queues=draw(st.booleans()))


@settings(max_examples=40, deadline=None)
@given(shared(), st.integers(1, 5))
def test_messages_add_up_and_no_pool_does_more_than_it_can(made: Setting, cores: int) -> None:
    simulator = started(made, cores)
    assert made.sharing is not None
    pools, fragments = made.sharing.pools, simulator.shape.fragments
    place = {load.tasks[0]: [pool.name for pool in pools].index(load.pool) for load in made.sharing.fragments}
    pool_of = [place[str(simulator.shape.names[first])] for first in fragments[:-1]]
    for _ in range(6):
        simulator.advance()
        invariants.check(simulator)
        work = simulator.last.done[0] * simulator.shape.cost_of(simulator.active[0])
        by_pool = np.zeros(len(pools))
        for g, pool in enumerate(pool_of):
            by_pool[pool] += work[fragments[g] : fragments[g + 1]].sum()
        assert (by_pool <= cores * made.interval_s * (1 + 1e-9)).all()
        # Within a fragment, only the rows that enter it wait.
        assert (simulator.queue[0] >= 0).all()


@settings(max_examples=40, deadline=None)
@given(flows(), clouds(spot=False), st.floats(0.5, 6.0))
def test_a_pool_for_each_task_is_the_papers_model(flow: Any, machines: Any, rate: float) -> None:
    alone = replace(setting(flow, rate), cloud=machines)
    wide = replace(alone, cloud=cloud())
    loads = tuple(FragmentLoad(task.id, task.id, fragment(task.id).stages) for task in flow.tasks)
    together = replace(wide, sharing=Sharing(loads, tuple(Pool(task.id) for task in flow.tasks)))
    cores = {task.id: 1 + place % 2 for place, task in enumerate(flow.tasks)}
    runs = []
    for made in (wide, together):
        simulator = Simulator(made)
        simulator.deploy(each_alone(cores))
        simulator.advance(made.intervals)
        runs.append(simulator)
    assert [str(name) for name in runs[0].shape.names] == [str(name) for name in runs[1].shape.names]
    np.testing.assert_allclose(runs[0].queues, runs[1].queues, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(runs[0].omega, runs[1].omega, rtol=1e-9)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_equal_fragments_get_equal_shares_and_nobody_starves(order: tuple[int, ...]) -> None:
    tasks = {"light": (0.1, 1.0), "one": (1.0, 1.0), "other": (1.0, 1.0)}
    names = [list(tasks)[place] for place in order]
    made = pooled({name: tasks[name] for name in names}, (), 4.0, [fragment(name) for name in names])
    simulator = started(made, 4)
    simulator.advance(10)
    done = dict(zip(simulator.shape.names, simulator.finished[0].tolist(), strict=True))
    assert done["light"] == pytest.approx(10 * 120 * 4.0)
    assert done["one"] == pytest.approx(done["other"])
    assert done["one"] == pytest.approx(10 * 120 * 1.8)


def test_weights_say_who_gets_more() -> None:
    loads = [fragment("a", weight=3.0), fragment("b")]
    simulator = started(pooled({"a": (1.0, 1.0), "b": (1.0, 1.0)}, (), 9.0, loads), 4)
    simulator.advance()
    assert simulator.last.done[0].tolist() == pytest.approx([3 * 120, 120])


def test_a_chain_in_one_pool_does_not_pile_up_behind_its_first_fragment() -> None:
    made = pooled({"a": (1.0, 1.0), "b": (1.0, 1.0)}, [("a", "b")], 9.0, [fragment("a"), fragment("b")])
    simulator = started(made, 4)
    simulator.advance()
    assert simulator.last.done[0].tolist() == pytest.approx([2 * 120, 2 * 120], rel=1e-5)


def test_the_design_s_worked_example() -> None:
    """Two fragments on four cores: the fluid column of the table in the design, and what two more cores bring."""
    tasks = {"parse": (0.002, 1.0), "score": (0.010, 1.0), "smooth": (0.003, 1.0)}
    more: dict[str, Any] = {"partitions": 4, "fixed_s": 0.25, "task_s": 0.005}
    loads = [fragment("F1", "parse", **more), fragment("F2", "smooth", **more)]
    one = replace(loads[0], stages=(replace(loads[0].stages[0], tasks=("parse", "score")),))
    made = pooled(tasks, [("parse", "score"), ("score", "smooth")], 150.0, [one, loads[1]], 2.0, interval_s=30.0)
    steps = np.repeat([150.0, 300.0, 100.0], [4, 4, 8])
    made = replace(made, rates={"parse": _Written(steps)}, intervals=16, counts_queues=True)
    simulator = started(made, 4)
    simulator.advance(16)
    waits, omega = simulator.queues[0].sum(axis=1), simulator.omega[0]
    # As in the design, but that starting tasks takes a core-second in a hundred: 261.2 rows a second, 1,165 waiting.
    assert waits[[3, 4, 5, 7, 9]] == pytest.approx([0, 1_165, 2_330, 4_660, 0], rel=0.02, abs=1e-3)
    assert omega[[3, 4, 5, 7, 9]] == pytest.approx([1.0, 0.871, 0.771, 0.627, 1.0], abs=0.005)
    loads = [
        replace(each, stages=tuple(replace(stage, partitions=6) for stage in each.stages)) for each in (one, loads[1])
    ]
    six = started(replace(made, sharing=Sharing(tuple(loads), (Pool("spark", (), 2.0),))), 6)
    six.advance(16)
    assert six.queues[0].sum() == pytest.approx(0, abs=1e-3)


class _Written(Constant):
    def __init__(self, values: Any) -> None:
        object.__setattr__(self, "values", values)
        super().__init__(float(values.mean()))

    def series(self, rng: Any, replications: int, intervals: int, interval_s: float) -> Any:
        del rng, interval_s
        return np.tile(getattr(self, "values"), (replications, 1))[:, :intervals]  # noqa: B009


def test_several_dataflows_have_a_throughput_each() -> None:
    graph = dataflow({"a": (0.1, 1.0), "b": (0.2, 1.0), "c": (1.0, 0.0)}, [("a", "b"), ("b", "c")])
    made = setting(graph, 4.0, owners={"first": ["a", "b"], "second": ["a", "b", "c"]}, counts_queues=False)
    simulator = Simulator(made)
    simulator.deploy(each_alone({"a": 1, "b": 1, "c": 1}))
    simulator.advance(made.intervals)
    run = simulator.run("fixed")
    # What the first puts out is an inner stream of the second, which is held up behind it.
    assert run.by_dataflow["first"][0][-1, 0] == pytest.approx(1.0)
    assert run.by_dataflow["second"][0][-1, 0] == pytest.approx(0.25)
    assert run.omega[-1, 0] == pytest.approx(0.625)


def test_fragments_that_feed_each_other_or_pools_that_are_missing_are_refused() -> None:
    tasks = {"a": (1.0, 1.0), "b": (1.0, 1.0), "c": (1.0, 1.0)}
    knot = [fragment("x", "a", "c"), fragment("y", "b")]
    with pytest.raises(ValueError, match="a cycle"):
        pooled(tasks, [("a", "b"), ("b", "c")], 1.0, knot).shape()
    with pytest.raises(InputError, match="every task belongs to one fragment"):
        pooled(tasks, [("a", "b"), ("b", "c")], 1.0, knot[:1]).shape()
    with pytest.raises(InputError, match="pool spark"):
        Sharing((fragment("x", "a"),), ())
    with pytest.raises(BadValue, match="there is no pool 'a'"):
        started(pooled({"a": (1.0, 1.0)}, (), 1.0, [fragment("a")]), {"a": 1})
