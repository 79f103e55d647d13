"""Where theory gives the answer exactly, the simulator gives it too."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from headgate.model.cluster.deployment import Deployment, Machine
from headgate.model.cluster.vm_class import HOURLY, PER_MINUTE, PER_SECOND, BillingPeriod
from headgate.simulation.policies import Deployed
from headgate.simulation.rates import Steps
from headgate.simulation.simulator import Simulator, simulate
from tests.simulation.worlds import cloud, dataflow, each_alone, setting

EXACT = 1e-12


@pytest.mark.parametrize(("rate", "cores"), [(3.0, 2), (3.0, 1), (0.5, 1), (10.0, 7)])
def test_a_single_task(rate: float, cores: int) -> None:
    flow = dataflow({"a": (0.5, 2.0)})
    seen = simulate(setting(flow, rate, counts_queues=False), Deployed(each_alone({"a": cores})))
    done = min(rate, cores / 0.5)
    assert seen.output_per_s[:, 0] == pytest.approx(2.0 * done, rel=EXACT)
    assert seen.omega[:, 0] == pytest.approx(done / rate, rel=EXACT)
    waiting = (rate - done) * 120.0 * np.arange(1, 31)
    assert seen.queues[:, 0, 0] == pytest.approx(waiting, rel=EXACT, abs=1e-9)
    assert seen.bill() == Decimal("0.06") * cores
    assert seen.mu[-1, 0] == pytest.approx(0.06 * cores, rel=EXACT)


def test_throughput_that_counts_what_waits_falls_as_the_queue_grows() -> None:
    flow = dataflow({"a": (0.5, 1.0)})
    seen = simulate(setting(flow, 3.0), Deployed(each_alone({"a": 1})))
    n = np.arange(30)
    assert seen.omega[:, 0] == pytest.approx(2.0 / (3.0 + 1.0 * n), rel=EXACT)


def test_a_chain_runs_at_its_narrowest_and_waits_there() -> None:
    flow = dataflow({"a": (0.1, 2.0), "b": (0.5, 0.5), "c": (0.1, 1.0)}, [("a", "b"), ("b", "c")])
    seen = simulate(setting(flow, 5.0, counts_queues=False), Deployed(each_alone({"a": 1, "b": 3, "c": 1})))
    # a does 5 a second and makes 10; b can do 6 and makes 3; c does all of them.
    assert seen.output_per_s[:, 0] == pytest.approx(3.0, rel=EXACT)
    assert seen.omega[:, 0] == pytest.approx(3.0 / 5.0, rel=EXACT)
    assert seen.queues[-1, 0] == pytest.approx([0.0, 4.0 * 3_600, 0.0], abs=1e-6)


def test_a_diamond_adds_up_where_it_meets() -> None:
    streams = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    flow = dataflow({"a": (0.1, 1.0), "b": (0.2, 2.0), "c": (0.4, 0.5), "d": (0.1, 1.0)}, streams)
    seen = simulate(setting(flow, 4.0, counts_queues=False), Deployed(each_alone({"a": 1, "b": 1, "c": 1, "d": 2})))
    # b does 4 of its 4 and makes 8; c does 2.5 of its 4 and makes 1.25; d does all 9.25 of the 10 there could be.
    assert seen.output_per_s[:, 0] == pytest.approx(9.25, rel=EXACT)
    assert seen.omega[:, 0] == pytest.approx(0.925, rel=EXACT)
    assert seen.queues[-1, 0] == pytest.approx([0, 0, 1.5 * 3_600, 0], abs=1e-6)


def test_a_queue_is_worked_off_when_the_rate_falls() -> None:
    flow = dataflow({"a": (0.5, 1.0)})
    steps = Steps(((0.0, 4.0), (1_800.0, 1.0)))
    seen = simulate(setting(flow, 0.0, rates={"a": steps}, intervals=60), Deployed(each_alone({"a": 1})))
    top = 2.0 * 1_800
    assert seen.queues[14, 0, 0] == pytest.approx(top, rel=EXACT)
    assert seen.queues[29, 0, 0] == pytest.approx(top - 1_800 * 1.0, rel=EXACT)
    assert seen.queues[44, 0, 0] == pytest.approx(0.0, abs=1e-6)
    assert seen.omega[45:, 0] == pytest.approx(1.0, rel=EXACT)


def test_a_machine_works_from_the_second_it_has_started() -> None:
    flow = dataflow({"a": (1.0, 1.0)})
    cold = setting(flow, 1.0, cloud=cloud(boot_s=97.0), warm=False)
    seen = simulate(cold, Deployed(each_alone({"a": 2})))
    # For 97 s nothing is done; in the rest of the first interval two cores do 46 of the 120 messages.
    assert seen.queues[0, 0, 0] == pytest.approx(120 - 2 * 23, rel=EXACT)
    assert seen.queues[1, 0, 0] == pytest.approx(0.0, abs=1e-9)
    assert seen.bill() == Decimal("0.12")  # paid from the moment it was asked for


def test_bandwidth_holds_messages_back_and_none_is_lost() -> None:
    flow = dataflow({"a": (0.01, 1.0), "b": (0.01, 1.0)}, [("a", "b")])
    # 0.04 Mbit/s carry 50 messages of 100 bytes a second, and 80 are made.
    narrow = setting(flow, 80.0, cloud=cloud(mbit=0.04), counts_queues=False)
    apart = simulate(narrow, Deployed(each_alone({"a": 1, "b": 1})))
    assert apart.output_per_s[:, 0] == pytest.approx(50.0, rel=EXACT)
    assert apart.in_transit[0] == pytest.approx(30.0 * 3_600, rel=1e-9)
    together = simulate(narrow, Deployed(Deployment((Machine("large", {"a": 1, "b": 1}),))))
    assert together.output_per_s[:, 0] == pytest.approx(80.0, rel=EXACT)
    # Two senders and one reader: each pair carries half, and together they carry all.
    spread = simulate(narrow, Deployed(each_alone({"a": 2, "b": 1})))
    assert spread.output_per_s[:, 0] == pytest.approx(80.0, rel=EXACT)


def test_faster_cores_count_for_more() -> None:
    flow = dataflow({"a": (1.0, 1.0)})
    seen = simulate(setting(flow, 9.0, counts_queues=False), Deployed(Deployment((Machine("large", {"a": 3}),))))
    assert seen.omega[:, 0] == pytest.approx(6.0 / 9.0, rel=EXACT)


@pytest.mark.parametrize(
    ("billing", "held_s", "periods"),
    [
        (HOURLY, 3_599, 1),
        (HOURLY, 3_600, 1),
        (HOURLY, 3_601, 2),
        (HOURLY, 7_200, 2),
        (PER_MINUTE, 59, 1),
        (PER_MINUTE, 61, 2),
        (PER_SECOND, 1, 60),
        (PER_SECOND, 61, 61),
        (BillingPeriod(3_600, 7_200), 10, 2),
    ],
)
def test_bills_at_the_edges_of_periods(billing: BillingPeriod, held_s: int, periods: int) -> None:
    flow = dataflow({"a": (1.0, 1.0)})
    simulator = Simulator(setting(flow, 0.5, cloud=cloud(billing), interval_s=1.0, intervals=7_300))
    (slot,) = simulator.acquire(0, 0)
    simulator.advance(held_s)
    simulator.release(0, int(slot))
    simulator.advance(7_300)
    seen = simulator.run("by hand")
    price = Decimal("0.06") * Decimal(str(billing.period_s)) / 3_600
    assert seen.machines[0].periods == periods
    assert seen.bill() == price * periods
    assert seen.mu[-1, 0] == pytest.approx(float(price * periods), rel=1e-12)
    assert seen.mu[held_s - 1, 0] == pytest.approx(float(price * periods), rel=1e-12)


def test_a_machine_is_paid_until_it_has_shut_down() -> None:
    flow = dataflow({"a": (1.0, 1.0)})
    simulator = Simulator(setting(flow, 0.5, cloud=cloud(PER_MINUTE, shut_down_s=30.0), interval_s=10.0, intervals=60))
    (slot,) = simulator.acquire(0, 0)
    simulator.advance(6)
    simulator.release(0, int(slot))
    simulator.advance(54)
    assert simulator.run("by hand").machines[0].periods == 2


def test_the_profit_is_zero_at_both_break_even_points() -> None:
    from headgate import parse

    text = """
name: choice
service_level: {break_even_at_best_per_h: 0.12, break_even_at_worst_per_h: 0.06}
tasks:
  - id: a
    ports: {outputs: [out]}
    alternates:
      - {name: best, type: opaque, config: {label: best}, cost_s: 1, value: 1}
      - {name: worst, type: opaque, config: {label: worst}, cost_s: 0.5, value: 0.4}
"""
    flow = parse(text, "yaml").dataflow
    for way, cores, gamma in (("best", 2, 1.0), ("worst", 1, 0.4)):
        deployment = Deployment(each_alone({"a": cores}).machines, {"a": way})
        seen = simulate(setting(flow, 1.0, intervals=60), Deployed(deployment))
        assert seen.gamma[:, 0] == pytest.approx(gamma)
        assert seen.theta is not None
        assert seen.theta[29, 0] == pytest.approx(0.0, abs=1e-12)  # after a whole hour
        assert seen.theta[59, 0] == pytest.approx(0.0, abs=1e-12)
        assert seen.summary().theta == pytest.approx(0.0, abs=1e-12)
