"""The simulator is as quick as is claimed, and takes memory in proportion."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from headgate.simulation.policies import make_policy
from headgate.simulation.rates import ArrivalRate, Constant, RandomWalk
from headgate.simulation.simulator import simulate
from headgate_benchmarks.dynamic import linear_road, varying_setting
from headgate_benchmarks.simulate import simulated_stages
from headgate_benchmarks.simulate_spark import LiveSizes, compare_live


def test_many_replications() -> None:
    simulated_stages(1, 2)  # compiles
    speeds = []
    for seed in range(3):
        began = time.process_time()
        run = simulated_stages(seed, 300)
        speeds.append(len(run.tasks) * run.omega.size / (time.process_time() - began))
    assert max(speeds) > 4_000_000


def test_ten_thousand_cores() -> None:
    rates: dict[str, ArrivalRate] = {"reports": RandomWalk(8_000.0), "weather": Constant(80.0)}
    setting = varying_setting(linear_road(8_000.0), rates, 12.0, 120.0)
    took = []
    for _ in range(3):
        began = time.process_time()
        run = simulate(setting, make_policy("static-peak", setting))
        took.append(time.process_time() - began)
    assert run.cores.max() > 10_000
    assert min(took) < 1.0


def test_memory_grows_no_faster_than_replications() -> None:
    peaks = []
    for replications in (100, 400):
        tracemalloc.start()
        simulated_stages(1, replications)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] / peaks[0] < 4.4


@pytest.mark.spark
@pytest.mark.slow
def test_a_live_run_and_its_replay_are_alike() -> None:
    figures = compare_live(1, print, LiveSizes()).figures
    assert figures["rows_behind_max"] > 1_000, "rows piled up"
    assert figures["spark_gap"] <= 0.15, figures
