"""One replication answers the protocol that Spark answers, and the same policies run on it."""

from __future__ import annotations

import numpy as np
import pytest

from headgate import parse
from headgate.adaptation.actions import (
    AcquireMachine,
    Action,
    AssignCores,
    ReleaseMachine,
    SetPartitions,
    SwitchAlternate,
)
from headgate.adaptation.cluster import Cluster
from headgate.adaptation.policies.baselines import UtilisationTarget
from headgate.errors import InputError
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.sharing.signature import sign
from headgate.simulation.policies import Deployed
from headgate.simulation.rates import Bursts, RandomWalk
from headgate.simulation.reshaped import Reshaped
from headgate.simulation.simulator import Simulator, simulate
from headgate.simulation.variability import EC2
from tests.adaptation.static import Static
from tests.simulation import invariants
from tests.simulation.simulated_cluster import EachReplication, SimulatedCluster, control
from tests.simulation.worlds import cloud, dataflow, each_alone, setting

CHAIN = dataflow({"a": (0.1, 2.0), "b": (0.2, 1.0)}, [("a", "b")])
A, B = (sign(CHAIN)[task.id] for task in CHAIN.tasks)


def _cluster(rate: float = 5.0) -> tuple[Simulator, SimulatedCluster]:
    simulator = Simulator(setting(CHAIN, rate, cloud=cloud(boot_s=90.0)))
    return simulator, SimulatedCluster(simulator)


def test_it_is_a_cluster_and_tells_what_was_measured() -> None:
    simulator, made = _cluster()
    cluster: Cluster = made
    cluster.apply([AcquireMachine("large", "x"), AssignCores("a", "x", 1), AssignCores("b", "x", 2)])
    simulator.advance(2)
    seen = cluster.observe()
    assert (seen.ended, seen.seconds) == (240.0, 240.0)
    first, second = seen.tasks
    assert (first.task, first.name, first.rows_in, first.rows_out) == (A, "a", 1_200, 2_400)
    assert second.selectivity == 1.0
    assert second.placed == (("vm-0", 2),)
    assert second.partitions == 2
    assert first.profile is not None
    assert first.profile.cpu_s_per_row == 0.1
    (machine,) = seen.machines
    assert (machine.name, machine.vm_class, machine.cores, machine.speed) == ("vm-0", "large", 4, 2.0)
    assert (machine.asked, machine.works) == (0.0, True)
    # a uses 0.5 of its one core of power 2, b 2.0 of its two: 0.25 + 1.0 of four cores.
    assert machine.busy == pytest.approx((0.25 + 2 * 0.5) / 4)
    simulator.advance(1)
    assert cluster.observe().seconds == 120.0
    assert cluster.observe().seconds == 0.0


def test_what_waits_is_told_where_it_waits() -> None:
    simulator, cluster = _cluster()
    cluster.apply([AcquireMachine("small", "x"), AssignCores("a", "x", 1)])
    simulator.advance(1)
    first, second = cluster.observe().tasks
    assert first.rows_waiting == 0.0
    assert second.rows_waiting == pytest.approx(10 * 120)
    assert cluster.observe().fragments[1].rows_behind == 1_200


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([AcquireMachine("huge")], "no VM class 'huge'"),
        ([ReleaseMachine("vm-7")], "no machine 'vm-7'"),
        ([AssignCores("a", "vm-0", 5)], "5 cores on machine 'vm-0', which has 4 free"),
        ([AssignCores("a", "vm-0", 3), AssignCores("b", "vm-0", 2)], "which has 1 free"),
        ([AssignCores("?", "vm-0", 1)], "no pool"),
        ([SwitchAlternate(A, "better")], "no alternate 'better'; choose one of opaque"),
        ([SetPartitions(A, 9)], "9 more than now, and 5 are free"),
        ([SetPartitions(A, None)], "say how many"),
        ([AcquireMachine("small", "vm-0")], "'vm-0' already"),
        ([ReleaseMachine("vm-0"), AssignCores("a", "vm-0", 1)], "no machine 'vm-0'"),
    ],
)
def test_all_or_nothing(actions: list[Action], message: str) -> None:
    simulator, cluster = _cluster()
    cluster.apply([AcquireMachine("large")])
    before = cluster.observe()
    with pytest.raises(InputError, match=message):
        cluster.apply([SetPartitions(B, 0), AcquireMachine("small"), *actions])
    assert cluster.observe() == before
    assert len(simulator.decisions) == 1


def test_partitions_are_found_where_cores_are_free() -> None:
    simulator, cluster = _cluster()
    cluster.apply([AcquireMachine("large"), AcquireMachine("large"), SetPartitions(A, 6), SetPartitions(B, 2)])
    assert [task.partitions for task in cluster.observe().tasks] == [6, 2]
    cluster.apply([SetPartitions(A, 1), SetPartitions(B, 7)])
    assert [task.partitions for task in cluster.observe().tasks] == [1, 7]
    simulator.advance(1)
    invariants.check(simulator)


def test_a_policy_on_the_protocol_and_one_for_all_replications_see_the_same() -> None:
    deployment = each_alone({"a": 1, "b": 3})
    world = setting(CHAIN, 0.0, rates={"a": RandomWalk(6.0)}, pool=EC2.pool(1), replications=3)
    at_once = simulate(world, Deployed(deployment))
    one_by_one = simulate(world, EachReplication(lambda: Static(deployment)))
    assert np.array_equal(at_once.omega, one_by_one.omega)
    assert np.array_equal(at_once.mu, one_by_one.mu)
    simulator = Simulator(world)
    cluster, policy = SimulatedCluster(simulator), Static(deployment)
    cluster.apply(policy.decide(cluster.observe()))

    def wait() -> bool:
        if simulator.over:
            return False
        simulator.advance()
        return True

    control(cluster, policy, wait)
    assert np.array_equal(simulator.run("looped").omega[:, 0], at_once.omega[:, 0])


def test_a_static_policy_switches_alternates() -> None:
    text = """
tasks:
  - id: a
    ports: {outputs: [out]}
    alternates:
      - {name: slow, type: opaque, config: {label: slow}, cost_s: 1, value: 1}
      - {name: quick, type: opaque, config: {label: quick}, cost_s: 0.1, value: 0.5}
"""
    flow = parse(text, "yaml").dataflow
    deployment = Deployment((Machine("small", {"a": 1}),), {"a": "quick"})
    seen = simulate(setting(flow, 5.0), EachReplication(lambda: Static(deployment)))
    assert (seen.gamma == 0.5).all()
    assert (seen.omega == 1.0).all()


def test_thresholds_follow_the_load_and_let_machines_go_when_their_hour_ends() -> None:
    rates = {"a": Bursts(4.0, 10.0, 7_200.0, 1_800.0)}
    world = setting(CHAIN, 0.0, rates=rates, intervals=360, replications=4, cloud=cloud(boot_s=97.0), seed=3)
    start = each_alone({"a": 1, "b": 3})
    seen = simulate(world, Reshaped(lambda *_: UtilisationTarget(0.7, 0.5, 0.85), start))
    static = simulate(world, Deployed(start))
    assert (seen.omega.mean(axis=0) > 0.85).all()
    assert (seen.omega.mean(axis=0) > static.omega.mean(axis=0)).all()
    assert (seen.cores.max(axis=0) > 2 * seen.cores.min(axis=0)).all()
    let_go = [each for each in seen.machines if each.released_s < 43_200]
    assert let_go
    for machine in let_go:
        left_s = machine.periods * 3_600 - (machine.released_s - machine.acquired_s)
        assert 0 <= left_s < 120


def test_pauses_of_moves_and_switches_cost_what_they_say() -> None:
    simulator = Simulator(setting(dataflow({"a": (1.0, 1.0)}), 2.0, deploy_s=30.0, switch_s=60.0))
    cluster = SimulatedCluster(simulator)
    cluster.apply([AcquireMachine("large", "x"), AssignCores("a", "x", 1)])
    simulator.advance(1)
    assert simulator.queue[0, 0] == 0.0  # two a second, and one core of power 2
    cluster.apply([AcquireMachine("large", "y"), AssignCores("a", "y", 1), AssignCores("a", "vm-0", 0)])
    simulator.advance(1)
    assert simulator.queue[0, 0] == pytest.approx(30 * 2)
    invariants.check(simulator)


def test_feedback_comes_back_in_the_next_interval() -> None:
    text = """
tasks:
  - {id: in, type: opaque, config: {label: in}, cost_s: 0.01, ports: {outputs: [out]}}
  - id: loop
    type: opaque
    config: {label: loop}
    cost_s: 0.01
    selectivity: 0.5
    ports: {inputs: [in, back], outputs: [out]}
    inputs: [{from: in, to: in}, {from: loop, to: back, feedback: true}]
  - {id: out, type: opaque, config: {label: out}, cost_s: 0.01, ports: {inputs: [in]}, inputs: [loop]}
"""
    simulator = Simulator(setting(parse(text, "yaml").dataflow, 8.0))
    simulator.deploy(each_alone({"in": 1, "loop": 1, "out": 1}))
    arrived = []
    for _ in range(6):
        simulator.advance()
        invariants.check(simulator)
        arrived.append(float(simulator.last.done[0, simulator.shape.place("loop")]) / 120)
    # 8, then 8 + 4, 8 + 6, ... towards 8 / (1 - 0.5).
    assert arrived == pytest.approx([16 * (1 - 0.5**n) for n in range(1, 7)])


def test_a_task_of_unknown_cost_cannot_be_simulated() -> None:
    from headgate.errors import InvalidDataflow

    flow = parse("tasks: [{id: a, type: rate}, {id: b, type: filter, config: {where: value > 1}, inputs: [a]}]", "yaml")
    with pytest.raises(InvalidDataflow) as caught:
        setting(flow.dataflow, 1.0).shape()
    assert [fault.task for fault in caught.value.faults] == ["a", "b"]
