"""``headgate bench simulate``: the speed of the simulator of dataflows, its memory, and its distance to a live run.

``lrb_static_s`` is Linear Road for 12 hours in intervals of 2 minutes at 8,000 messages a second, on machines that vary
as EC2's did, under a deployment that stays; ``lrb_threshold_s`` the same under a policy that decides after every
interval through the protocol that Spark answers too, and ``lrb_ce_s`` under DYN's CE, which decides on arrays and
begins with a plan. ``pe_steps_per_s`` counts a task in an interval of a replication as one: 1,000 replications of ten
stages of three tasks, 12 hours in intervals of 5 minutes, from the setting to the result. Times are medians of CPU
seconds of one thread, after a first run that compiles. Part ``spark`` compares a simulation with a live run
(:mod:`headgate_benchmarks.simulate_spark`).
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.simulate_spark import LiveSizes, compare_live
from headgate_benchmarks.study import Measured, Progress

if TYPE_CHECKING:
    from headgate.simulation.rates import ArrivalRate
    from headgate.simulation.run import Run

__all__ = ["SIMULATE", "simulated_stages"]


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int = 5
    rate_per_s: float = 8_000.0
    hours: float = 12.0
    replications: int = 1_000
    live: LiveSizes = field(default_factory=LiveSizes)


def _speed(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return _linear_road(seed, progress, sizes) | _ten_stages(seed, progress, sizes) | _memory(seed, progress, sizes)


def _timed(work: Callable[[], Run]) -> tuple[Run, float]:
    began = time.process_time()
    run = work()
    return run, time.process_time() - began


def _linear_road(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    from headgate.simulation.policies import make_policy
    from headgate.simulation.rates import Constant, RandomWalk
    from headgate.simulation.simulator import simulate
    from headgate_benchmarks.dynamic import linear_road, varying_setting

    rate = sizes.rate_per_s
    rates: dict[str, ArrivalRate] = {"reports": RandomWalk(rate), "weather": Constant(rate / 100)}

    def once(policy: str, hours: float) -> Run:
        setting = varying_setting(linear_road(rate), rates, hours, 120.0, seed)
        return simulate(setting, make_policy(policy, setting))

    figures: dict[str, float] = {}
    samples: dict[str, list[float]] = {}
    for policy, rounds in (("static", sizes.rounds), ("threshold", 1), ("ce", sizes.rounds)):
        progress(f"Linear Road, {policy}, compiling")
        once(policy, 0.2)
        took = samples[f"lrb_{policy}_s"] = []
        for turn in range(rounds):
            progress(f"Linear Road, {policy}, round {turn + 1} of {rounds}")
            run, seconds = _timed(lambda policy=policy: once(policy, sizes.hours))  # type: ignore[misc]
            took.append(seconds)
        cores = "cores" if policy == "static" else "cores_max"
        figures |= {
            f"lrb_{policy}_s": statistics.median(took),
            f"lrb_{policy}_{cores}": int(run.cores.max()),
            f"lrb_{policy}_omega": float(run.omega.mean()),
        }
    return Measured(figures, samples)


def simulated_stages(seed: int, replications: int) -> Run:
    """PLAN-AHEAD's ten stages under a deployment for the peak, so many times."""
    from headgate.simulation.policies import make_policy
    from headgate.simulation.rates import Sinusoid
    from headgate.simulation.simulator import simulate
    from headgate_benchmarks.dynamic import ten_stages, varying_setting

    rates = {f"s1{each}": Sinusoid(75.0, 2.0, phase=place / 3) for place, each in enumerate("abc")}
    setting = varying_setting(ten_stages(), rates, 12.0, 300.0, seed, replications)
    return simulate(setting, make_policy("static-peak", setting))


def _ten_stages(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    progress("ten stages, compiling")
    simulated_stages(seed, 2)
    speeds = []
    for turn in range(sizes.rounds):
        progress(f"ten stages, {sizes.replications:,} replications, round {turn + 1} of {sizes.rounds}")
        run, seconds = _timed(lambda: simulated_stages(seed, sizes.replications))
        speeds.append(len(run.tasks) * run.omega.size / seconds)
    return Measured({"pe_steps_per_s": statistics.median(speeds)}, {"pe_steps_per_s": speeds})


def _memory(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """The most memory at once, for growing numbers of replications; growth 1 is linear."""
    peaks: dict[int, int] = {}
    most = sizes.replications
    for replications in (most // 4, most // 2, most, 2 * most):
        progress(f"memory of {replications:,} replications")
        tracemalloc.start()
        simulated_stages(seed, replications)
        peaks[replications] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    few, many = min(peaks), max(peaks)
    figures = {"memory_mb_1000": peaks[most] / 1e6, "memory_growth": peaks[many] / peaks[few] / (many / few)}
    return Measured(figures, {"memory_bytes": {str(key): value for key, value in peaks.items()}})


def _spark(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return compare_live(seed, progress, sizes.live)


SIMULATE = Benchmark(
    "simulate",
    "The simulator of dataflows: speed, memory, and distance to a live run.",
    {"speed": _speed, "spark": _spark},
    Sizes(),
    Sizes(1, 200.0, 1.0, 20, LiveSizes(((30.0, 2.0), (60.0, 2.0), (250.0, 4.0), (30.0, 4.0)), 1.0, from_start=True)),
    "lrb_static_s lrb_static_cores lrb_static_omega lrb_threshold_* lrb_ce_* pe_steps_per_s memory_mb_1000 "
    "memory_growth spark_gap throughput_gap backlog_gap rows_behind_max",
)
