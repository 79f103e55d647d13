"""Conservation and accounting over random dataflows, clouds and decisions; agreement with a plain model."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.adaptation.actions import (
    AcquireMachine,
    Action,
    AssignCores,
    ReleaseMachine,
    SetPartitions,
    SwitchAlternate,
)
from headgate.errors import InputError
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.model.cluster.vm_class import BillingPeriod, Cloud, VmClass
from headgate.model.dataflow import Dataflow
from headgate.simulation.policies import Deployed
from headgate.simulation.rates import Bursts, Constant, RandomWalk, Sinusoid
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator, simulate
from headgate.simulation.variability import EC2, STEADY
from tests.simulation import invariants, naive
from tests.simulation.simulated_cluster import SimulatedCluster
from tests.simulation.worlds import dataflow

numbers = st.floats(0.05, 2.0).map(lambda value: round(value, 3))
selectivities = st.one_of(st.just(0.0), numbers)


@st.composite
def flows(draw: Any) -> Dataflow:
    count = draw(st.integers(1, 6))
    names = [f"t{n}" for n in range(count)]
    streams = [
        (names[source], names[target])
        for target in range(1, count)
        for source in sorted(draw(st.sets(st.integers(0, target - 1), max_size=2)))
    ]
    return dataflow({name: (draw(numbers), draw(selectivities)) for name in names}, streams)


@st.composite
def clouds(draw: Any, spot: bool = True) -> Cloud:
    classes = tuple(
        VmClass(
            f"c{n}",
            draw(st.integers(1, 8)),
            draw(numbers),
            draw(st.sampled_from([0.01, 0.1, 100.0])),
            Decimal(draw(st.integers(1, 100))) / 100,
            draw(st.sampled_from([0.0, 45.0, 97.0, 400.0])) if spot else 0.0,
            draw(st.sampled_from([0.0, 20.0])) if spot else 0.0,
            draw(st.sampled_from([0.0, 2.0])) if spot else 0.0,
        )
        for n in range(draw(st.integers(1, 3)))
    )
    period = draw(st.sampled_from([BillingPeriod(3_600.0), BillingPeriod(60.0), BillingPeriod(1.0, 60.0)]))
    return Cloud("random", classes, period)


def _rates(draw: Any, flow: Dataflow) -> dict[str, Any]:
    fed = {stream.target for stream in flow.streams}
    choices = [Constant(3.0), RandomWalk(5.0), Sinusoid(6.0, 1.0, 3_600.0), Bursts(2.0, 8.0, 600.0, 120.0)]
    return {task.id: draw(st.sampled_from(choices)) for task in flow.tasks if task.id not in fed}


def _random_action(rng: np.random.Generator, cluster: SimulatedCluster) -> Action:
    seen = cluster.observe()
    sim = cluster.simulator
    task = seen.tasks[rng.integers(len(seen.tasks))]
    machines = seen.machines.name or ("vm-99",)
    machine = machines[rng.integers(len(machines))]
    kinds = sim.setting.cloud.classes
    match rng.integers(6):
        case 0 | 1:
            return AcquireMachine(kinds[rng.integers(len(kinds))].name)
        case 2:
            return ReleaseMachine(machine)
        case 3:
            return SetPartitions(task.task, int(rng.integers(0, 12)))
        case 4:
            return SwitchAlternate(task.task, task.alternate)
        case _:
            return AssignCores(task.name, machine, int(rng.integers(0, 6)))


@settings(max_examples=40)
@given(st.data(), flows(), clouds(), st.integers(0, 2**32))
def test_whatever_is_decided_messages_and_money_add_up(data: Any, flow: Dataflow, cloud: Cloud, seed: int) -> None:
    pool = data.draw(st.sampled_from([STEADY, EC2.pool(1, 5, 6)]))
    made = Setting(
        flow,
        cloud,
        _rates(data.draw, flow),
        intervals=40,
        interval_s=data.draw(st.sampled_from([60.0, 120.0, 250.0])),
        pool=pool,
        replications=2,
        seed=seed,
        deploy_s=data.draw(st.sampled_from([0.0, 30.0])),
        switch_s=10.0,
        warm=data.draw(st.booleans()),
    )
    simulator = Simulator(made)
    clusters = [SimulatedCluster(simulator, row) for row in range(2)]
    rng = np.random.default_rng(seed)
    while not simulator.over:
        for cluster in clusters:
            actions = [_random_action(rng, cluster) for _ in range(rng.integers(0, 4))]
            before: list[Any] = [simulator.fleet.placed.copy(), simulator.fleet.issued.copy(), simulator.active.copy()]
            try:
                cluster.apply(actions)
            except InputError:
                after: list[Any] = [simulator.fleet.placed, simulator.fleet.issued, simulator.active]
                assert all(np.array_equal(was, now) for was, now in zip(before, after, strict=True))
        simulator.advance(int(rng.integers(1, 4)))
        invariants.check(simulator)
    invariants.check_bills(simulator)


@settings(max_examples=60)
@given(st.data(), flows(), clouds(spot=False), st.booleans())
def test_the_compiled_intervals_do_what_the_plain_model_does(
    data: Any, flow: Dataflow, cloud: Cloud, counts_queues: bool
) -> None:
    machines = []
    for _ in range(data.draw(st.integers(1, 5))):
        kind = data.draw(st.sampled_from(cloud.classes))
        tasks = data.draw(st.lists(st.sampled_from([task.id for task in flow.tasks]), min_size=1, max_size=kind.cores))
        machines.append(Machine(kind.name, {task: tasks.count(task) for task in tasks}))
    deployment = Deployment(tuple(machines))
    made = Setting(flow, cloud, _rates(data.draw, flow), intervals=12, counts_queues=counts_queues)
    seen = simulate(made, Deployed(deployment))
    shape = made.shape()
    series = made.external(shape)[0]
    rates = {str(shape.names[task]): series[:, place].tolist() for place, task in enumerate(shape.sources)}
    omegas, queues = naive.omega_and_queues(made, deployment, rates)
    np.testing.assert_allclose(seen.omega[:, 0], omegas, rtol=1e-9)
    for step, queue in enumerate(queues):
        np.testing.assert_allclose(seen.queues[step, 0], [queue[task] for task in shape.names], rtol=1e-9, atol=1e-6)


def test_one_seed_gives_one_world_whatever_else_is_simulated() -> None:
    flow = dataflow({"a": (0.3, 1.0), "b": (0.2, 1.0)}, [("a", "b")])
    cloud = Cloud("c", (VmClass("v", 2, 1.0, 10.0, Decimal("0.1"), interruptions_per_h=0.3),))
    deployment = Deployment(tuple(Machine("v", {"a": 1, "b": 1}) for _ in range(4)))

    def run(replications: int, seed: int) -> Any:
        made = Setting(flow, cloud, {"a": RandomWalk(8.0)}, 200, 120.0, EC2.pool(3), replications, seed)
        return simulate(made, Deployed(deployment))

    few, many, other = run(3, 7), run(9, 7), run(3, 8)
    assert np.array_equal(few.omega, many.omega[:, :3])
    assert np.array_equal(few.queues, many.queues[:, :3])
    assert len({float(value) for value in many.omega.mean(axis=0)}) == 9
    assert not np.array_equal(few.omega, other.omega)
    assert {each.machine for each in few.interruptions if each.replication == 1} == {
        each.machine for each in many.interruptions if each.replication == 1
    }


def test_interruptions_come_as_often_as_they_should() -> None:
    flow = dataflow({"a": (0.3, 1.0)})
    cloud = Cloud("c", (VmClass("v", 1, 1.0, 10.0, Decimal("0.1"), interruptions_per_h=0.5),))
    made = Setting(flow, cloud, {"a": Constant(1.0)}, 60, 60.0, replications=2_000)
    seen = simulate(made, Deployed(Deployment((Machine("v", {"a": 1}),))))
    lost = len(seen.interruptions) / 2_000
    assert lost == pytest.approx(1 - np.exp(-0.5), abs=0.04)
    assert all(each.interrupted == (each.released_s < 3_600) for each in seen.machines)
