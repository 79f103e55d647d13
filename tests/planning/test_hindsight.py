"""The bound of hindsight: no run is above it, and in small worlds it is what the best of all schedules reaches."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate import parse
from headgate.adaptation.catalogue import POLICIES
from headgate.errors import HeadgateError, InputError
from headgate.model.cluster.vm_class import BillingPeriod, Cloud, VmClass
from headgate.planning.objective import BreakEven
from headgate.planning.programs.hindsight import future_of, hindsight
from headgate.planning.programs.leases import Leases
from headgate.planning.programs.linear import LinearProgram
from headgate.planning.programs.serving import Fluid
from headgate.simulation.policies import make_policy
from headgate.simulation.rates import Recorded
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator, simulate
from headgate.simulation.variability import TracePool

LEVEL = "service_level: {throughput_min: %s, break_even_at_best_per_h: 4, break_even_at_worst_per_h: 2}\n"
ONE = """tasks:
  - id: a
    alternates:
      - {name: good, type: opaque, config: {label: x}, cost_s: 0.8}
      - {name: fair, type: opaque, config: {label: y}, value: 0.6, cost_s: 0.4}
    ports: {outputs: [out]}
"""
FOUR = """tasks:
  - {id: a, type: opaque, config: {label: a}, cost_s: 0.2, ports: {outputs: [out]}}
  - id: b
    alternates:
      - {name: good, type: opaque, config: {label: b1}, cost_s: 0.6}
      - {name: fair, type: opaque, config: {label: b2}, value: 0.7, cost_s: 0.3, selectivity: 0.5}
    inputs: [a]
  - id: c
    alternates:
      - {name: good, type: opaque, config: {label: c1}, cost_s: 0.5}
      - {name: fair, type: opaque, config: {label: c2}, value: 0.8, cost_s: 0.2}
    inputs: [a]
  - {id: d, type: opaque, config: {label: d}, cost_s: 0.3, inputs: [b]}
"""
CLOUD = Cloud(
    "two",
    (
        VmClass("small", 1, 1.0, 500, Decimal("0.06"), boot_s=97.0),
        VmClass("large", 3, 2.0, 500, Decimal("0.30"), boot_s=97.0),
    ),
)


def world(text: str, rates: list[float], speeds: np.ndarray, least: float, cloud: Cloud, **more: object) -> Setting:
    flow = parse(LEVEL % least + text, "yaml").dataflow
    pool = TracePool(speeds, np.ones_like(speeds), np.ones_like(speeds), 600.0, "drawn")
    return Setting(flow, cloud, {"a": Recorded(tuple(rates), 600.0)}, len(rates), 600.0, pool, **more)  # type: ignore[arg-type]


def profit_of(setting: Setting, gamma: float, cost: float) -> float:
    even = BreakEven.of(setting.dataflow)
    assert even is not None
    return even.times(setting.hours).net_value(gamma, cost)


class Whim:
    """Acquires, places, switches and lets go as the dice fall."""

    name, every = "whim", 1

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def begin(self, simulator: Simulator) -> None:
        for _ in range(int(self.rng.integers(1, 6))):
            simulator.acquire(0, int(self.rng.integers(len(simulator.setting.cloud.classes))))
        self.decide(simulator)

    def decide(self, simulator: Simulator) -> None:
        rng, fleet = self.rng, simulator.fleet
        if rng.random() < 0.2:
            simulator.acquire(0, int(rng.integers(len(simulator.setting.cloud.classes))))
        for task, ways in enumerate(simulator.shape.alternates):
            simulator.switch(0, task, int(rng.integers(len(ways))))
        for slot in fleet.working(0, simulator.now_s).tolist():
            if rng.random() < 0.05:
                simulator.release(0, slot)
                continue
            left = simulator.setting.cloud.classes[int(fleet.kind[0, slot])].cores
            fleet.placed[0, slot] = 0
            for task in rng.permutation(simulator.shape.tasks).tolist():
                cores = int(rng.integers(left + 1))
                simulator.place(0, task, slot, cores)
                left -= cores


rates_drawn = st.lists(st.floats(0.0, 6.0), min_size=6, max_size=14)
speeds_drawn = st.integers(0, 1_000).map(lambda seed: np.random.default_rng(seed).uniform(0.4, 1.0, (3, 20)))


@settings(max_examples=12, deadline=None)
@given(
    rates_drawn,
    speeds_drawn,
    st.sampled_from([ONE, FOUR]),
    st.sampled_from([0.05, 0.3, 0.8]),
    st.booleans(),
    st.integers(0, 99),
)
def test_no_run_is_above_the_bound(
    rates: list[float], speeds: np.ndarray, text: str, least: float, counts: bool, seed: int
) -> None:
    """Whims explore what no policy would do; half of the examples let what waits count."""
    setting = world(text, [rate + 0.1 for rate in rates], speeds, least, CLOUD, counts_queues=counts, seed=seed)
    bound = hindsight(setting, time_limit_s=20.0).bound
    for turn in range(12):
        seen = simulate(setting, Whim(turn)).summary()  # type: ignore[arg-type]
        if seen.omega >= least:
            assert profit_of(setting, seen.gamma, seen.cost) <= bound + 1e-6


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("ga", "drs")])
@pytest.mark.parametrize("counts", [False, True])
def test_no_policy_is_above_the_bound(name: str, counts: bool) -> None:
    rng = np.random.default_rng(len(name))
    rates = (3 + 2 * np.sin(np.arange(18) / 3) + rng.uniform(0, 1, 18)).tolist()
    setting = world(FOUR, rates, rng.uniform(0.5, 1.0, (4, 30)), 0.5, CLOUD, counts_queues=counts)
    try:
        seen = simulate(setting, make_policy(name, setting)).summary()
    except HeadgateError:  # pragma: no cover (a policy may have nothing to begin with)
        return
    if seen.omega >= 0.5:
        assert profit_of(setting, seen.gamma, seen.cost) <= hindsight(setting, time_limit_s=20.0).bound + 1e-6


Spans = tuple[tuple[int, int] | None, ...]


def _scheduled(setting: Setting, held: Spans, ways: tuple[int, ...]) -> tuple[float, float]:
    """Throughput and profit of a schedule: machines from interval to interval, an alternate for each."""
    simulator = Simulator(setting)
    slots: dict[int, int] = {}
    for step, way in enumerate(ways):
        for machine, span in enumerate(held):
            if span is not None and span[1] == step and machine in slots:
                simulator.release(0, slots.pop(machine))
            if span is not None and span[0] == step:
                slots[machine] = int(simulator.acquire(0, 0)[0])
                simulator.place(0, 0, slots[machine], 1)
        simulator.switch(0, 0, way)
        simulator.advance(1)
    seen = simulator.run("scheduled").summary()
    return seen.omega, profit_of(setting, seen.gamma, seen.cost)


def optimum(setting: Setting, machines: int, row: int = 0) -> float:
    r"""The same program with whole machines and alternates, every way to hold one written out: for small worlds.

    With one task it is what the best of all schedules of at most so many machines reaches, :math:`\Gamma - \sigma\mu`;
    minus infinity where none of them reaches the throughput.
    """
    even = BreakEven.of(setting.dataflow)
    assert even is not None
    sigma = even.times(setting.hours).sigma
    leases = Leases.of(setting.cloud, setting.interval_s, setting.intervals, setting.warm)
    speed = setting.machine_speeds(row, machines)
    program = LinearProgram()
    future = future_of(setting, row, speed)
    fluid = Fluid(program, future, whole=True)
    used = program.rows(machines, upper=np.where(np.arange(machines) == 0, 1.0, 0.0))
    for machine in range(machines):
        for kind, vm in enumerate(setting.cloud.classes):
            for way, cost in enumerate(leases.cost(kind)):
                works = leases.works(kind, way)
                column = program.columns(1, -sigma * cost, upper=1.0, whole=True)
                gives = vm.cores * vm.core_power * works * speed[machine]
                program.put(fluid.power, column, -np.add.reduceat(gives, fluid.starts))
                program.put(fluid.cores, column, -np.add.reduceat(vm.cores * (works > 0.0), fluid.starts))
                program.put(used[machine : machine + 1], column, 1.0)
                program.put(used[machine + 1 : machine + 2], column, -1.0)
    solution = program.solved(60.0, 1e-9)
    return -np.inf if solution.objective is None else solution.objective


def _compared(rates: list[float], speeds: np.ndarray, least: float) -> tuple[float, float, float]:
    """The best of all schedules of two machines, the program's optimum with whole numbers, and the bound."""
    cloud = Cloud("one", (VmClass("small", 1, 1.0, 500, Decimal("0.60"), boot_s=97.0),), BillingPeriod(1_200.0))
    setting = world(ONE, rates, speeds, least, cloud, counts_queues=False)
    spans = [None, *((begin, end) for begin in range(3) for end in range(begin + 1, 4))]
    best = -np.inf
    for first, second in product(spans, spans):
        # The second machine is acquired after the first.
        if second is not None and (first is None or second[0] < first[0]):
            continue
        for ways in product((0, 1), repeat=3):
            omega, profit = _scheduled(setting, (first, second), ways)
            if omega >= least - 1e-9:
                best = max(best, profit)
    return best, optimum(setting, 2), hindsight(setting, time_limit_s=20.0, gap=1e-6).bound


three_rates = st.lists(st.floats(0.3, 4.0), min_size=3, max_size=3)


@settings(max_examples=6, deadline=None)
@given(three_rates, speeds_drawn, st.sampled_from([0.3, 0.6, 0.9]))
def test_in_small_worlds_no_schedule_is_better(rates: list[float], speeds: np.ndarray, least: float) -> None:
    """The program does not know in which order machines are acquired: of two it may take the later one first."""
    best, result, bound = _compared(rates, speeds, least)
    assert best <= result + 1e-6
    assert best <= bound + 1e-6


@settings(max_examples=6, deadline=None)
@given(three_rates, st.sampled_from([0.3, 0.6, 0.9]))
def test_where_machines_are_alike_it_is_the_best_of_all_schedules(rates: list[float], least: float) -> None:
    best, result, bound = _compared(rates, np.ones((1, 1)), least)
    if np.isfinite(best):
        assert result == pytest.approx(best, abs=1e-6)
    else:
        assert result == best
    assert best <= bound + 1e-6


def test_without_a_price_of_value_there_is_no_bound() -> None:
    flow = parse("tasks: [{id: a, type: opaque, cost_s: 0.5, ports: {outputs: [out]}}]", "yaml").dataflow
    with pytest.raises(InputError, match="break-even"):
        hindsight(Setting(flow, CLOUD, {"a": Recorded((1.0,), 600.0)}, 4, 600.0))
