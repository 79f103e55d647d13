"""The receding horizon: it buys ahead of what it sees coming, explains itself, and steps back when it sees nothing."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from headgate import parse
from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.policies.levelling import least_served, levelled
from headgate.adaptation.policies.reactive import Reactive
from headgate.adaptation.policies.receding import Receding
from headgate.errors import BadValue, InputError
from headgate.forecasting.forecast import Forecast
from headgate.forecasting.forecaster import Forecaster
from headgate.forecasting.guard import Guarded
from headgate.forecasting.online import Settings
from headgate.forecasting.oracle import Oracle
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.planning.objective import BreakEven
from headgate.simulation.policies import make_policy
from headgate.simulation.rates import Recorded
from headgate.simulation.reshaped import Reshaped
from headgate.simulation.run import Run
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import simulate

TEXT = """
service_level: {throughput_min: 0.8, break_even_at_best_per_h: 4, break_even_at_worst_per_h: 2}
tasks:
  - {id: a, type: opaque, config: {label: a}, cost_s: 0.2, ports: {outputs: [out]}}
  - id: b
    alternates:
      - {name: good, type: opaque, config: {label: b1}, cost_s: 0.6}
      - {name: fair, type: opaque, config: {label: b2}, value: 0.7, cost_s: 0.3}
    inputs: [a]
"""
CLOUD = Cloud("one", (VmClass("small", 1, 1.0, 500, Decimal("0.06"), boot_s=97.0),))
START = Deployment((Machine("small", {"a": 1}), Machine("small", {"b": 1}), Machine("small", {"b": 1})))
STEP = [2.0] * 24 + [6.0] * 24


def world(rates: list[float], **more: object) -> Setting:
    flow = parse(TEXT, "yaml").dataflow
    return Setting(flow, CLOUD, {"a": Recorded(tuple(rates), 300.0)}, len(rates), 300.0, counts_queues=False, **more)  # type: ignore[arg-type]


def run_with(setting: Setting, forecaster: Forecaster, **more: object) -> Run:
    even = BreakEven.of(setting.dataflow)
    assert even is not None
    core = Receding(forecaster, [0], even, 300.0, setting.intervals, **more)  # type: ignore[arg-type]
    return simulate(setting, Reshaped(core, START))


def knowing(rates: list[float]) -> Forecaster:
    return Oracle().start(np.array([rates]))


def test_it_reaches_the_throughput_and_says_why() -> None:
    seen = run_with(world(STEP), knowing(STEP))
    assert seen.summary().omega >= 0.8
    message = [each.reason for each in seen.reasons]
    assert message
    assert not any(each.startswith("reactive") for each in message)
    assert any("acquire" in each for each in message)


class Broken:
    """Answers with what is no number."""

    name, series = "broken", 1

    def update(self, observations: object) -> None:
        del observations

    def forecast(self, horizon: int) -> Forecast:
        levels = Settings().levels
        return Forecast(np.full((1, horizon), np.nan), np.full((1, horizon, len(levels)), np.nan), levels)


def test_where_the_forecaster_fails_the_reactive_policy_decides_and_a_sentence_says_so() -> None:
    setting = world(STEP)
    seen = run_with(setting, Guarded(Broken))
    other = simulate(setting, Reshaped(Reactive(), START))
    assert [each.what for each in seen.decisions] == [each.what for each in other.decisions]
    message = [each.reason for each in seen.reasons if each.reason.startswith("reactive")]
    assert len(message) == setting.intervals - 1
    assert "is not a finite number" in message[0]


def test_where_the_solver_finds_nothing_the_reactive_policy_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.adaptation.policies.receding.Horizon.solved", lambda *_: None)
    seen = run_with(world(STEP[:12]), knowing(STEP[:12]))
    assert all("no plan was found within" in each.reason for each in seen.reasons if "reactive" in each.reason)
    assert any("reactive" in each.reason for each in seen.reasons)


def test_where_what_waits_counts_it_does_not_shed() -> None:
    rates = [3.0] * 36
    setting = world(rates)
    seen = simulate(
        Setting(setting.dataflow, CLOUD, setting.rates, 36, 300.0),
        Reshaped(Receding(knowing(rates), [0], BreakEven.of(setting.dataflow), 300.0, 36, counts_queues=True), START),  # type: ignore[arg-type]
    )
    assert seen.omega[12:, 0].min() > 0.7


def test_by_name_with_a_forecaster_of_ours() -> None:
    setting = world([2.0, 2.2, 1.9, 2.1] * 6)
    seen = simulate(setting, make_policy("receding", setting, PolicySettings("holt")))
    assert seen.policy == "receding"
    assert seen.summary().omega >= 0.75
    with pytest.raises(InputError, match="did you mean 'holt'"):
        simulate(setting, make_policy("receding", setting, PolicySettings("hold")))


def test_a_period_without_steps_is_refused() -> None:
    with pytest.raises(BadValue, match="a period of 0 steps"):
        Receding(knowing([1.0]), [0], BreakEven(1.0, 0.8, 2.0, 1.0), 300.0, 0)


def test_cores_go_to_whoever_has_least_and_none_is_given_twice() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        cores = rng.integers(1, 5, 6)
        placed = np.zeros((6, 4), dtype=np.int64)
        speed, demand = rng.uniform(0.5, 2.0, 6), rng.uniform(0.0, 6.0, 4)
        before = least_served(placed, speed, demand)
        levelled(placed, cores.copy(), speed, demand)
        assert (placed >= 0).all()
        assert (placed.sum(axis=1) <= cores).all()
        assert least_served(placed, speed, demand) >= before
