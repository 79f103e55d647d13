"""The bound of hindsight in 2,000 random worlds: no run that meets its throughput is above it, whatever decides."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pytest

from headgate.adaptation.catalogue import POLICIES
from headgate.adaptation.look_ahead import PolicySettings
from headgate.model.cluster.vm_class import PER_SECOND, Cloud, VmClass
from headgate.planning.objective import BreakEven
from headgate.planning.programs.hindsight import hindsight
from headgate.simulation.policies import make_policy
from headgate.simulation.rates import Recorded
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator, VectorPolicy, simulate
from headgate.simulation.variability import TracePool
from tests.planning.instances import parse_dict
from tests.planning.random_worlds import Whim, random_world

NAMES = [name for name in POLICIES if name not in ("ga", "drs")]
"""The genetic algorithm takes seconds for what others do in milliseconds, and decides nothing that they could not."""


class _Nothing:
    """Has no machine: where Omega were 1 without any work, this would earn all value for no money."""

    name = "nothing"
    every: int | None = None

    def begin(self, simulator: Simulator) -> None:
        del simulator

    def decide(self, simulator: Simulator) -> None:
        raise NotImplementedError


def _deciders(setting: Setting, seed: int) -> list[VectorPolicy]:
    names = {NAMES[seed % len(NAMES)], NAMES[(7 * seed + 3) % len(NAMES)]}
    ahead = PolicySettings(horizon_s=3 * setting.interval_s)
    return [_Nothing(), *(Whim(turn) for turn in range(4)), *(make_policy(name, setting, ahead) for name in names)]


def _above(setting: Setting, deciders: Sequence[VectorPolicy]) -> list[str]:
    """Who has more than the bound says anybody can have, and how many meet the throughput at all."""
    bound = hindsight(setting, time_limit_s=60.0).bound
    even, least = BreakEven.of(setting.dataflow), setting.dataflow.service_level.throughput_min
    assert even is not None
    above = []
    for decider in deciders:
        seen = simulate(setting, decider).summary()
        profit = even.times(setting.hours).net_value(seen.gamma, seen.cost)
        if seen.omega >= least and profit > bound + 1e-6:
            above.append(f"{decider.name} has {profit:.6f}, the bound is {bound:.6f}")
    return above


def _check(seeds: range) -> None:
    above = {seed: _above(world, _deciders(world, seed)) for seed in seeds for world in [random_world(seed)]}
    assert {seed: names for seed, names in above.items() if names} == {}


def test_no_policy_is_above_the_bound_in_a_sample_of_random_worlds() -> None:
    _check(range(25))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2_000, 100))
def test_no_policy_is_above_the_bound_in_random_worlds(first: int) -> None:
    _check(range(first, first + 100))


class _Draws:
    """Draws machines and lets go of them at once until a fast one comes, which then does everything."""

    name = "draws"
    every: int | None = None

    def begin(self, simulator: Simulator) -> None:
        for _ in range(3):
            simulator.release(0, int(simulator.acquire(0, 0)[0]))
        simulator.place(0, 0, int(simulator.acquire(0, 0)[0]), 1)

    def decide(self, simulator: Simulator) -> None:
        raise NotImplementedError


def test_machines_may_be_had_for_less_than_an_interval() -> None:
    """Where billing is by the second, one that is let go of at once costs a minute: less than an interval of ten."""
    ways = [{"name": "good", "cost_s": 1.0}, {"name": "fair", "cost_s": 0.5, "value": 0.5}]
    task = {"id": "t0", "alternates": [{"type": "opaque", "config": {"label": each["name"]}, **each} for each in ways]}
    level = {"throughput_min": 0.9, "break_even_at_best_per_h": 2.0, "break_even_at_worst_per_h": 1.0}
    flow = parse_dict(
        {"name": "f", "service_level": level, "tasks": [{**task, "ports": {"outputs": ["out"]}}]},
    )
    speeds = np.array([*[[0.01]] * 19, [1.0]])
    cloud = Cloud("one", (VmClass("small", 1, 1.0, 500, Decimal("0.60")),), PER_SECOND)
    for seed in range(2_000):
        pool = TracePool(speeds, np.ones_like(speeds), np.ones_like(speeds), 600.0, "slow and fast")
        setting = Setting(flow, cloud, {"t0": Recorded((0.95,), 600.0)}, 6, 600.0, pool, seed=seed)
        if np.flatnonzero(setting.machine_speeds(0, 16)[:, 0] == 1.0).tolist() == [3]:
            assert _above(setting, [_Draws()]) == []
            assert simulate(setting, _Draws()).summary().omega > 0.9
            return
    raise AssertionError("no seed has the fourth of sixteen machines as the only fast one")
