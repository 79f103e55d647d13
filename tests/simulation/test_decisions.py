"""What a run records of its decisions is all that was done: done again, it gives the same run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headgate.adaptation.actions import AcquireMachine, AssignCores, ReleaseMachine, SwitchAlternate
from headgate.model.cluster.deployment import Deployment
from headgate.model.names import Signature
from headgate.service.simulate import SimulationRequest, setting_of
from headgate.sharing.signature import sign
from headgate.simulation.policies import make_policy
from headgate.simulation.run import Decided, Run
from headgate.simulation.simulator import Simulator, simulate
from headgate.tasks.registry import default_registry

ROAD = Path(__file__).resolve().parents[2] / "examples" / "simulation" / "linear_road.yaml"


def _again(run: Run) -> Simulator:
    simulator = Simulator(run.setting)
    signatures = sign(run.setting.dataflow)
    places = {signatures[name]: place for place, name in enumerate(simulator.shape.names)}
    left = list(run.decisions)
    while True:
        while left and left[0].at_s <= simulator.now_s:
            _do(simulator, left.pop(0), places)
        if simulator.over:
            assert not left
            return simulator
        simulator.advance()


def _do(simulator: Simulator, decided: Decided, places: dict[Signature, int]) -> None:
    row, fleet = decided.replication or 0, simulator.fleet

    def slot(machine: str) -> int:
        place = fleet.slot_of(row, machine, simulator.now_s)
        assert place is not None
        return place

    match decided.what:
        case Deployment():
            simulator.deploy(decided.what)
        case AcquireMachine(vm_class, machine):
            got = int(simulator.acquire(row, simulator.setting.cloud.place(vm_class))[0])
            assert machine == f"vm-{fleet.number[row, got]}"
        case ReleaseMachine(machine):
            simulator.release(row, slot(machine))
        case AssignCores(pool, machine, cores):
            simulator.place(row, simulator.columns.index(pool), slot(machine), cores)
        case SwitchAlternate(task, alternate):
            simulator.switch(row, places[task], simulator.shape.alternates[places[task]].index(alternate))
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("policy", ["static", "threshold", "ce", "ds2", "lookahead"])
def test_decisions_done_again_give_the_same_run(policy: str) -> None:
    request = SimulationRequest(
        ROAD, ("random-walk:20", "weather=0.5"), 4.0, variability="ec2", replications=2, deploy_s=20.0, switch_s=5.0
    )
    setting = setting_of(request, default_registry())
    run = simulate(setting, make_policy(policy, setting))
    simulator = _again(run)
    assert np.array_equal(simulator.omega.T, run.omega)
    assert np.array_equal(simulator.mu.T, run.mu)
    assert np.array_equal(simulator.gamma.T, run.gamma)
    assert np.array_equal(simulator.cores.T, run.cores)
    if policy != "static":
        assert run.summary().changes > 0
