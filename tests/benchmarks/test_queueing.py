"""``headgate bench queueing``: small rounds of it, and the bounds that are quick enough to check here."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.sizing import SizingProblem, assign_to
from headgate.queueing.station import Station, StationModel
from headgate.queueing.traffic import solve_traffic
from headgate_benchmarks.event_simulator.queueing_network import simulate
from headgate_benchmarks.other_simulators import ciw_line, simpy_line
from headgate_benchmarks.queueing import QUEUEING
from headgate_benchmarks.random_networks import general_network, jackson_network


def test_general_models_are_nearer_than_mmk_where_service_is_general() -> None:
    sizes = replace(QUEUEING.long, jackson=6, meeting=2, general=6, visits=(100_000,))
    figures = QUEUEING.parts["fidelity"](1, lambda _: None, sizes).figures
    assert figures["mmk_error_p50"] < 0.1
    assert figures["ggk_error_p50"] < figures["ggk_by_mmk_error_p50"]


@pytest.mark.parametrize("make", [jackson_network, general_network])
def test_random_networks_are_loaded_as_asked(make: object) -> None:
    assert callable(make)
    for seed in range(30):
        workload = make(np.random.default_rng(seed))
        rates = solve_traffic(workload.network).rates_per_s
        for operator, rate, k in zip(workload.network.operators, rates, workload.allocation, strict=True):
            assert 0.3 <= rate / (k * operator.service_rate_per_s) <= 0.95


def test_there_are_loops_and_splits_that_copy_among_them() -> None:
    networks = [jackson_network(np.random.default_rng(seed)).network for seed in range(40)]
    assert sum(any(route.source >= route.target for route in network.routes) for network in networks) > 10
    assert sum(not all(network.chooses.values()) for network in networks) > 10


def test_three_simulators_see_the_same_line() -> None:
    line = Network(
        tuple(Operator(f"s{i}", 1.0, arrival_rate_per_s=2.0 * (i == 0)) for i in range(2)), (Route("s0", "s1"),)
    )
    ours = simulate(line, [3, 3], 100_000, seed=1).mean_s
    for other in (simpy_line, ciw_line):
        visits, mean = other(2, 3, 2.0, 6_000, 1)
        assert visits >= 12_000
        assert mean == pytest.approx(ours, rel=0.08)


def test_the_optimiser_and_the_simulator_are_as_quick_as_is_claimed() -> None:
    small = SizingProblem(
        tuple(Station(f"o{i}", a, 1.0) for i, a in enumerate((30.0, 45.0, 20.0))),
        (1.0,) * 3,
        np.eye(3),
        StationModel.MMK,
    )
    took = []
    for _ in range(200):
        started = time.perf_counter()
        assign_to(small, 192)
        took.append(time.perf_counter() - started)
    assert min(took) < 100e-6
    line = Network(
        tuple(Operator(f"s{i}", 1.0, arrival_rate_per_s=2.4 * (i == 0)) for i in range(5)),
        tuple(Route(f"s{i}", f"s{i + 1}") for i in range(4)),
    )
    simulate(line, [3] * 5, 100, seed=1)
    speeds = []
    for seed in range(3):
        started = time.process_time()
        speeds.append(simulate(line, [3] * 5, 50_000, seed).visits / (time.process_time() - started))
    assert max(speeds) > 1_500_000
