"""Policies that place instances: what they may never do, what they do for whom, and the baselines beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.core_moves import add_cores, drain_due, fit_power, remove_cores, throughput
from headgate.adaptation.policies.baselines import CpuThresholds, Ds2, UtilisationTarget
from headgate.adaptation.policies.exact import Optimal
from headgate.adaptation.policies.reactive import Core, Reactive
from headgate.adaptation.repacking import repack_due
from headgate.errors import BadValue
from headgate.model.arrays import Shape
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.simulation.policies import make_policy
from headgate.simulation.rates import ArrivalRate, Constant, RandomWalk
from headgate.simulation.reshaped import Reshaped
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator, simulate
from headgate_benchmarks.dynamic import linear_road, varying_setting
from tests.adaptation.placing import Placing
from tests.simulation.simulated_cluster import EachReplication

ROAD = linear_road(50.0)
RATES: dict[str, ArrivalRate] = {"reports": RandomWalk(50.0), "weather": Constant(0.5)}
ADAPTIVE = ["ce", "sh", "exact", "ds2", "flink", "cpu", "lookahead", "waaf", "wpp"]


def _setting(hours: float = 3.0, counts_queues: bool = False) -> Setting:
    return replace(varying_setting(ROAD, RATES, hours, 120.0), counts_queues=counts_queues)


def _situation(cores: list[list[int]], left_s: list[float], omega: float = 0.9, rate: float = 50.0) -> ClusterView:
    """Machines of two cores on which reports (1) and congestion (2) of Linear Road have so many."""
    shape = Shape.of(ROAD)
    placed = np.zeros((len(cores), shape.tasks), dtype=np.int64)
    for row, counts in enumerate(cores):
        placed[row, : len(counts)] = counts
    external = np.zeros(shape.tasks)
    external[shape.place("reports")] = rate
    external[shape.place("weather")] = rate / 100
    return ClusterView(
        shape,
        Cloud("two", (VmClass("two", 2, 2.0, 1000, Decimal("0.24")),)),
        ROAD.service_level,
        120.0,
        omega,
        external,
        np.zeros(shape.tasks),
        np.zeros(shape.tasks, dtype=np.int64),
        np.zeros(len(cores), dtype=np.int64),
        np.full(len(cores), 2.0),
        placed,
        np.array(left_s),
    )


@dataclass
class _Watched:
    """A policy whose every decision is looked at."""

    policy: Reshaped
    name: str = "watched"
    every: int | None = 1

    def begin(self, simulator: Simulator) -> None:
        self.policy.begin(simulator)

    def decide(self, simulator: Simulator) -> None:
        held = {(int(n), k) for n, k in self._machines(simulator)}
        decided = len(simulator.decisions)
        self.policy.decide(simulator)
        assert (simulator.fleet.free_cores(0) >= 0).all()
        assert (simulator.fleet.placed >= 0).all()
        gone = held - {(int(n), k) for n, k in self._machines(simulator)}
        for number, _ in gone:
            acquired = next(b.acquired_s for b in simulator.fleet.booked(simulator.now_s) if b.number == number)
            held_s = simulator.now_s - acquired
            assert simulator.setting.cloud.billing.paid_until_s(held_s) - held_s < simulator.setting.interval_s
        costly = simulator.shape.cost_s[np.arange(simulator.shape.tasks), simulator.active[0]] > 0
        cores = simulator.fleet.placed[0].sum(axis=0)
        assert (cores[costly] > 0).all()
        kinds = {type(each.what).__name__ for each in simulator.decisions[decided:]}
        if isinstance(self.policy.core, Reactive) and "SwitchAlternate" in kinds:
            assert kinds <= {"SwitchAlternate", "ReleaseMachine"}

    @staticmethod
    def _machines(simulator: Simulator) -> list[tuple[int, int]]:
        slots = simulator.fleet.working(0, simulator.now_s)
        return [(int(simulator.fleet.number[0, s]), int(simulator.fleet.kind[0, s])) for s in slots]


@pytest.mark.parametrize("name", ADAPTIVE)
def test_cores_are_never_given_twice_and_paid_hours_never_thrown_away(name: str) -> None:
    setting = _setting(0.5 if name == "exact" else 1.5)
    policy = make_policy(name, setting)
    assert isinstance(policy, Reshaped)
    run = simulate(setting, _Watched(policy))
    assert run.summary().omega > 0.7
    assert float(run.bill()) == pytest.approx(run.mu[-1, 0])


def test_replications_do_not_know_of_each_other() -> None:
    one = _setting(1.0)
    many = replace(one, replications=3)
    alone, together = (simulate(each, make_policy("ce", each)) for each in (one, many))
    assert np.array_equal(alone.omega[:, 0], together.omega[:, 0])
    assert np.array_equal(alone.mu[:, 0], together.mu[:, 0])
    assert not np.array_equal(together.omega[:, 0], together.omega[:, 1])


def test_the_instance_on_the_machine_that_is_paid_least_long_goes_first() -> None:
    rows = [[1, 1], [0, 0, 2], [0, 0, 2], [0, 0, 2], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0, 0, 1]]
    now = _situation(rows, [3000.0, 3000.0, 100.0, 3000.0, 3000.0, 3000.0, 3000.0], rate=3.0)
    remove_cores(now, 0.8)
    assert now.placed[2].sum() == 0, "the machine whose hour is nearly over"
    assert now.to_release().tolist() == [2]
    congestion = now.shape.place("congestion")
    assert now.placed[:, congestion].sum() == 2, "3.6 of power at 0.8 are two cores of 2"


def test_more_uses_free_cores_before_it_buys() -> None:
    now = _situation([[1, 1], [0, 1], [0, 0]], [3000, 3000, 3000], rate=2.0)
    now.placed[2] = 0
    machines = len(now.kind)
    add_cores(now, 0.8)
    assert (now.placed[:3].sum(axis=1) == 2).all()
    assert len(now.kind) > machines
    assert (now.placed.sum(axis=1) <= 2).all()


def test_machines_are_emptied_into_free_cores() -> None:
    now = _situation([[1], [0, 1], [0, 0, 1]], [60, 3000, 60])
    drain_due(now)
    assert now.placed[:, :3].tolist() == [[0, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert now.to_release().tolist() == [0]


def test_towards_stays_between_its_bounds() -> None:
    now = _situation([[2], [2], [2]], [3000, 3000, 100])
    low = np.array([4.0, 3.0, 0.5, 0, 0, 0, 0, 0])
    fit_power(now, low, low + 2.0)
    assert (now.power >= low).all()
    assert (now.power <= low + 2.0).all()


def test_alternates_follow_the_band() -> None:
    for omega, wanted in ((0.5, 1), (0.8, 0), (1.0, 0)):
        now = _situation([[1, 1], [0, 1], [2, 0]] + [[0, 0, 2]] * 12, [3000.0] * 15, omega)
        Reactive(alternates_every=1).decide(now, 1)
        assert now.active[now.shape.place("congestion")] == wanted
    now = _situation([[1, 1]] + [[0, 0, 2]] * 40, [3000.0] * 41, 1.0)
    now.active[now.shape.place("congestion")] = 1
    Reactive(centralised=False, alternates_every=1).decide(now, 1)
    assert now.active[now.shape.place("congestion")] in (0, 1)


@pytest.mark.parametrize("core", [Ds2(), UtilisationTarget(), CpuThresholds()])
def test_baselines_follow_the_rate(core: Core) -> None:
    few = _situation([[1, 1]] + [[0, 0, 2]] * 12, [3000.0] * 13, rate=200.0)
    before = few.power.sum()
    core.decide(few, 1)
    assert few.power.sum() > before
    many = _situation([[1, 1]] + [[0, 0, 2]] * 60, [3000.0] * 61, rate=5.0)
    before = many.power.sum()
    core.decide(many, 1)
    assert many.power.sum() < before
    assert (many.power[many.cost > 0] > 0).sum() >= 3


def test_ds2_asks_for_what_the_rates_ask_for() -> None:
    now = _situation([[1, 1]], [3000.0])
    Ds2().decide(now, 1)
    wanted = now.achievable() * now.cost
    assert (now.power >= wanted - 1e-9).all()
    assert (now.power <= wanted + 4.0).all()


def test_what_is_running_stays_unless_moving_pays() -> None:
    """At a constant rate on machines as rated, the optimum changes nothing after it has begun."""
    setting = Setting(
        ROAD, _setting().cloud, {"reports": Constant(50.0), "weather": Constant(0.5)}, 10, counts_queues=False
    )
    policy = make_policy("exact", setting)
    assert isinstance(policy, Reshaped)
    run = simulate(setting, replace(policy, core=Optimal(ROAD, margin=0.0)))
    assert run.summary().changes_per_day < 24 * 30
    assert run.omega.min() >= 0.8 - 1e-6


def test_a_band_that_cannot_be() -> None:
    with pytest.raises(BadValue, match=r"a target utilisation of 0\.3 in a band from 0\.4"):
        UtilisationTarget(target=0.3)


@pytest.mark.parametrize("core", [Reactive(), Reactive(centralised=False), Ds2()])
@pytest.mark.parametrize("counts_queues", [False, True])
def test_both_doors_lead_to_the_same(core: Core, counts_queues: bool) -> None:
    """A policy on observations, which has to infer what came in, does what the one on the simulator's arrays does."""
    setting = _setting(2.0, counts_queues)
    lean = make_policy("ce", setting)
    assert isinstance(lean, Reshaped)

    def placing() -> Placing:
        return Placing(core, ROAD, setting.cloud, lean.deployment, setting.interval_s, counts_queues)

    through_arrays = simulate(setting, Reshaped(core, lean.deployment))
    through_actions = simulate(setting, EachReplication(placing))
    assert through_actions.omega.mean() == pytest.approx(through_arrays.omega.mean(), abs=0.02)
    assert through_actions.mu[-1, 0] == pytest.approx(through_arrays.mu[-1, 0], rel=0.05)


SIZES = Cloud(
    "sizes",
    (
        VmClass("weak", 1, 1.0, 1000, Decimal("0.06")),
        VmClass("one", 1, 2.0, 1000, Decimal("0.12"), boot_s=90.0),
        VmClass("two", 2, 2.0, 1000, Decimal("0.23"), boot_s=90.0),
        VmClass("four", 4, 2.0, 1000, Decimal("0.44"), boot_s=90.0),
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**20))
def test_repacking_never_costs_more_and_keeps_every_core(seed: int) -> None:
    rng = np.random.default_rng(seed)
    machines = int(rng.integers(1, 12))
    now = _situation([[0]] * machines, rng.choice([60.0, 1_800.0], machines).tolist(), rate=float(rng.uniform(1, 9)))
    now.cloud, now.kind = SIZES, rng.integers(0, 4, machines)
    now.speed = np.array([each.core_power for each in SIZES.classes])[now.kind]
    for row, cores in enumerate(now.cores):
        for _ in range(int(rng.integers(0, cores + 1))):
            now.placed[row, rng.integers(0, now.shape.tasks)] += 1
    before, was = now.placed.copy(), now.kind.copy()
    kept = throughput(now) >= now.level.throughput_min
    repack_due(now)
    price, paid = np.array([float(each.price_per_h) for each in SIZES.classes]), now.left_s[:machines] >= 120.0
    used = now.placed.sum(axis=1) > 0
    used[:machines] |= paid
    assert price[now.kind[used]].sum() <= price[was[(before.sum(axis=1) > 0) | paid]].sum() + 1e-9
    assert now.placed.sum(axis=0).tolist() == before.sum(axis=0).tolist()
    assert (now.placed.sum(axis=1) <= now.cores).all()
    rated = np.array([each.core_power for each in SIZES.classes])
    assert (rated[now.kind] @ now.placed >= rated[was] @ before).all()
    assert now.placed[:machines][paid].tolist() == before[paid].tolist()
    assert throughput(now) >= now.level.throughput_min or not kept


def test_a_nearly_empty_machine_gives_way_to_a_smaller_one_when_its_hour_ends() -> None:
    for left_s, kinds in ((60.0, [3, 3, 1]), (1_800.0, [3, 3])):
        now = _situation([[1, 1, 1, 1], [0, 0, 0, 0, 1]], [1_800.0, left_s], rate=0.1)
        now.cloud, now.kind = SIZES, np.array([3, 3])
        now.placed[0, 5:] = 1
        repack_due(now)
        assert now.kind.tolist() == kinds
        assert now.to_release().tolist() == ([1] if left_s == 60 else [])


@pytest.mark.parametrize(("power", "fits"), [(3.5, False), (4.5, True)])
def test_alternates_need_power_for_all_that_comes(power: float, fits: bool) -> None:
    """5 messages a second of cost 0.8 need 4.0; what is asked for, 0.8 of them, would fit into 3.2."""
    now = _situation([[2, 2], [2, 2]] + [[0, 0, 0, 1, 1, 1, 1, 1]] * 2, [3000.0] * 4, omega=0.5, rate=5.0)
    congestion = now.shape.place("congestion")
    now.placed[:, congestion] = [0, 0, 1, 1]
    now.speed = np.array([2.0, 2.0, power / 2, power / 2])
    Reactive(alternates_every=1).decide(now, 1)
    assert bool(now.active[congestion]) is fits


@pytest.mark.parametrize(("m", "n"), [(5, 1), (2, 1), (3, 4), (1, 1)])
def test_alternates_at_every_mth_decision_and_resources_at_every_nth_of_the_others(m: int, n: int) -> None:
    for turn in range(1, 25):
        now = _situation([[1, 1]] + [[0, 0, 1]] * 3, [3000.0] * 4, omega=0.3, rate=5.0)
        Reactive(True, m, n).decide(now, turn)
        switched, cores = bool(now.active.any()), int(now.placed.sum()) != 5
        assert not (switched and cores)
        assert not switched or turn % m == 0
        assert cores == (turn % m != 0 and turn % n == 0)
