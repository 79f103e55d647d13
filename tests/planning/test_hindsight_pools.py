"""The bound of hindsight holds where tasks share cores, too: a pool can do nothing that its machines could not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.pooled.catalogue import POOLED
from headgate.planning.objective import BreakEven
from headgate.planning.programs.hindsight import hindsight
from headgate.simulation.policies import make_policy
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import simulate
from tests.adaptation.pooled.windows import sharing_of
from tests.planning.random_worlds import random_world

NAMES = [name for name in POOLED if name not in ("drs", "receding")]
"""Random worlds ask for no latency; the program of ``receding`` takes seconds."""


def _pooled(seed: int) -> Setting:
    setting = random_world(seed)
    return replace(setting, sharing=sharing_of(np.random.default_rng(seed), setting.dataflow))


def _above(seed: int) -> list[str]:
    setting = _pooled(seed)
    bound = hindsight(setting, time_limit_s=60.0).bound
    even, least = BreakEven.of(setting.dataflow), setting.dataflow.service_level.throughput_min
    assert even is not None
    above = []
    for name in {NAMES[seed % len(NAMES)], NAMES[(7 * seed + 3) % len(NAMES)], "exact"}:
        policy = make_policy(name, setting, PolicySettings("naive", horizon_s=3 * setting.interval_s))
        seen = simulate(setting, policy).summary()
        profit = even.times(setting.hours).net_value(seen.gamma, seen.cost)
        if seen.omega >= least and profit > bound + 1e-6:
            above.append(f"{name} has {profit:.6f}, the bound is {bound:.6f}")
    return above


def test_no_policy_on_a_shared_pool_is_above_the_bound() -> None:
    above = {seed: _above(seed) for seed in range(8)}
    assert {seed: names for seed, names in above.items() if names} == {}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_no_policy_on_a_shared_pool_is_above_the_bound_in_many_worlds(first: int) -> None:
    above = {seed: _above(seed) for seed in range(first, first + 50)}
    assert {seed: names for seed, names in above.items() if names} == {}
