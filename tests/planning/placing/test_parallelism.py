"""How many instances, and which bound decides."""

from __future__ import annotations

import random
from decimal import Decimal
from math import ceil

import pytest

from headgate.errors import BadValue, Infeasible, InputError
from headgate.model.cluster.alternate_cost import Origin
from headgate.model.cluster.vm_class import VmClass
from headgate.planning.known_figures import Figure
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.parallelism import Bound, InstanceLimits, parallelism_of
from headgate.planning.placing.profiles import OperatorProfile

LARGE = VmClass("large", 64, 1.0, 1_000.0, Decimal(1))


def _one(cpu: float = 0.0, transfer: float = 0.0, sojourn: float | None = None, memory: float = 0.0) -> OperatorProfile:
    def given(value: float) -> Figure:
        return Figure(value, Origin.GIVEN)

    held = cpu if sojourn is None else sojourn
    return OperatorProfile("t", "t", given(cpu), given(held), given(transfer), given(memory))


def _bound(profile: OperatorProfile, rate: float, **limits: float) -> tuple[int, Bound]:
    loads = OperatorLoads.of([], {"t": profile}, {"t": rate})
    (answer,) = parallelism_of(loads, [LARGE], InstanceLimits(**limits))
    assert answer.kind is answer.bound or answer.bound is Bound.MACHINE
    return answer.instances, answer.bound


def test_each_bound_of_the_paper() -> None:
    assert _bound(_one(cpu=0.001), 2_500.0) == (3, Bound.CPU)
    assert _bound(_one(cpu=1e-6, transfer=1e-4), 2_500.0) == (3, Bound.IO)
    assert _bound(_one(cpu=1e-6, sojourn=0.01), 2_500.0) == (25, Bound.SOJOURN)
    assert _bound(_one(memory=2**20), 1_300.0) == (3, Bound.MEMORY)


def test_alpha_beta_and_fill_are_options() -> None:
    assert _bound(_one(cpu=1e-6, transfer=1e-4), 2_500.0, alpha=0.05) == (5, Bound.IO)
    assert _bound(_one(memory=2**20), 1_300.0, beta_bytes=2.0**28) == (6, Bound.MEMORY)
    assert _bound(_one(cpu=0.001), 2_500.0, fill=0.5) == (5, Bound.CPU)
    for wrong in ({"alpha": 0.0}, {"beta_bytes": -1.0}, {"fill": 1.1}):
        with pytest.raises(BadValue):
            InstanceLimits(**wrong)


def test_it_is_the_largest_of_four_recomputed() -> None:
    draw = random.Random(4)
    for _ in range(300):
        c_p, c_t, t, m = (draw.uniform(0, 2e-3), draw.uniform(0, 1e-4), draw.uniform(0, 5e-3), draw.uniform(0, 2**18))
        rate = draw.uniform(1, 5_000)
        asked = [rate * c_p, rate * c_t / 0.1, rate * max(t, c_p), rate * m / (512 * 2**20)]
        instances, _ = _bound(_one(c_p, c_t, max(t, c_p), m), rate)
        assert instances == max(1, *(ceil(each - 1e-9) for each in asked))


def test_work_takes_longer_on_slow_cores_and_waiting_does_not() -> None:
    slow = VmClass("slow", 64, 0.5, 1_000.0, Decimal(1))
    loads = OperatorLoads.of([], {"t": _one(cpu=0.001, sojourn=0.011)}, {"t": 1_000.0})
    (answer,) = parallelism_of(loads, [slow])
    assert answer.asked[Bound.CPU] == pytest.approx(2.0)
    assert answer.asked[Bound.SOJOURN] == pytest.approx(12.0)


def test_more_than_it_can_have_is_a_sentence() -> None:
    profile = OperatorProfile("t", "t", Figure(0.001, Origin.GIVEN), Figure(0.001, Origin.GIVEN), instances_max=2)
    loads = OperatorLoads.of([], {"t": profile}, {"t": 2_500.0})
    with pytest.raises(Infeasible, match="can have 2 instances, which does 2,000 rows/s"):
        parallelism_of(loads, [LARGE])


def test_a_target_of_millions_is_refused() -> None:
    loads = OperatorLoads.of([], {"t": _one(cpu=0.001)}, {"t": 1e9})
    with pytest.raises(Infeasible, match="1,000,000 instances would be needed"):
        parallelism_of(loads, [LARGE])


def test_rates_are_checked() -> None:
    known = {"t": _one(cpu=0.001)}
    for rates, message in (({}, "no rate is given"), ({"t": 0.0}, "all rates are 0"), ({"u": 1.0}, "is no source")):
        with pytest.raises(InputError, match=message):
            OperatorLoads.of([], known, rates)
