"""``headgate bench simulate``: how quick the simulator of dataflows is, and what memory it takes.

``lrb_static_s`` is Linear Road for 12 hours in intervals of 2 minutes at 8,000 messages a second, on machines that vary
as EC2's did, under a deployment that stays; ``lrb_threshold_s`` the same under a policy that decides after every
interval, through the protocol that Spark answers too, and ``lrb_ce_s`` under DYN's CE, which decides on arrays and
begins with a plan. ``pe_steps_per_s`` counts a task in an interval of a replication
as one: 1,000 replications of ten stages of three tasks, 12 hours in intervals of 5 minutes, from the setting to the
result. Times are medians of CPU seconds (all of it is one thread's work), after a first run that compiles. How near a
simulation comes to a live run is measured on Spark (:mod:`headgate_benchmarks.simulate_spark`).
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate_benchmarks import simulate_spark
from headgate_benchmarks.measured import Measured

if TYPE_CHECKING:
    from headgate.simulation.rates import ArrivalRate
    from headgate.simulation.run import Run
    from headgate.simulation.setting import Setting

__all__ = ["run", "speed"]

Progress = Callable[[str], None]
ROUNDS = 5
REPLICATIONS = 1_000


def run(seed: int, progress: Progress) -> Measured:
    """Measure speed and memory, then run on Spark and compare."""
    quick, live = speed(seed, progress), simulate_spark.run(seed, progress)
    return Measured({**quick.figures, **live.figures}, {**quick.samples, **live.samples})


def speed(seed: int, progress: Progress) -> Measured:
    """Measure speed and memory."""
    figures: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    for measure in (_linear_road, _ten_stages, _memory):
        found, raw = measure(seed, progress)
        figures |= found
        samples |= raw
    return Measured({key: round(v, 5) if isinstance(v, float) else v for key, v in figures.items()}, samples)


def _linear_road(seed: int, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
    from headgate.simulation.policies import make_policy
    from headgate.simulation.rates import Constant, RandomWalk
    from headgate.simulation.simulator import simulate
    from headgate_benchmarks.dynamic import linear_road, varying_setting

    rates: dict[str, ArrivalRate] = {"reports": RandomWalk(8_000.0), "weather": Constant(80.0)}

    def once(policy: str, hours: float = 12.0) -> Run:
        setting = varying_setting(linear_road(8_000.0), rates, hours, 120.0, seed)
        return simulate(setting, make_policy(policy, setting))

    progress("Linear Road, compiling")
    once("static", 0.2)
    took, run = [], None
    for turn in range(ROUNDS):
        progress(f"Linear Road, static, round {turn + 1} of {ROUNDS}")
        began = time.process_time()
        run = once("static")
        took.append(time.process_time() - began)
    assert run is not None
    progress("Linear Road, threshold")
    began = time.process_time()
    adapted = once("threshold")
    slow = time.process_time() - began
    progress("Linear Road, CE, compiling")
    once("ce", 0.2)
    planned_s = []
    for turn in range(ROUNDS):
        progress(f"Linear Road, CE, round {turn + 1} of {ROUNDS}")
        began = time.process_time()
        planned = once("ce")
        planned_s.append(time.process_time() - began)
    figures = {
        "lrb_static_s": statistics.median(took),
        "lrb_static_cores": int(run.cores[0, 0]),
        "lrb_static_omega": float(run.omega.mean()),
        "lrb_threshold_s": slow,
        "lrb_threshold_cores_max": int(adapted.cores.max()),
        "lrb_threshold_omega": float(adapted.omega.mean()),
        "lrb_ce_s": statistics.median(planned_s),
        "lrb_ce_cores_max": int(planned.cores.max()),
        "lrb_ce_omega": float(planned.omega.mean()),
    }
    return figures, {"lrb_static_s": took, "lrb_threshold_s": [slow], "lrb_ce_s": planned_s}


def _stages(seed: int, replications: int) -> Setting:
    from headgate.simulation.rates import Sinusoid
    from headgate_benchmarks.dynamic import ten_stages, varying_setting

    rates = {f"s1{each}": Sinusoid(75.0, 2.0, phase=place / 3) for place, each in enumerate("abc")}
    return varying_setting(ten_stages(), rates, 12.0, 300.0, seed, replications)


def _simulated(seed: int, replications: int) -> Run:
    from headgate.simulation.policies import make_policy
    from headgate.simulation.simulator import simulate

    setting = _stages(seed, replications)
    return simulate(setting, make_policy("static-peak", setting))


def _ten_stages(seed: int, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
    progress("ten stages, compiling")
    _simulated(seed, 2)
    speeds = []
    for turn in range(ROUNDS):
        progress(f"ten stages, {REPLICATIONS:,} replications, round {turn + 1} of {ROUNDS}")
        began = time.process_time()
        run = _simulated(seed, REPLICATIONS)
        steps = len(run.tasks) * run.omega.size
        speeds.append(steps / (time.process_time() - began))
    return {"pe_steps_per_s": statistics.median(speeds)}, {"pe_steps_per_s": speeds}


def _memory(seed: int, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
    """The most memory at once, for growing numbers of replications; growth 1 is linear."""
    peaks: dict[int, int] = {}
    for replications in (REPLICATIONS // 4, REPLICATIONS // 2, REPLICATIONS, 2 * REPLICATIONS):
        progress(f"memory of {replications:,} replications")
        tracemalloc.start()
        run = _simulated(seed, replications)
        peaks[replications] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        del run
    few, many = min(peaks), max(peaks)
    figures = {
        "memory_mb_1000": peaks[REPLICATIONS] / 1e6,
        "memory_growth": peaks[many] / peaks[few] / (many / few),
    }
    return figures, {"memory_bytes": {str(key): value for key, value in peaks.items()}}
