"""``headgate bench queueing``: the error of the queueing models, and the speed of models and simulator.

Errors are those of predicted mean sojourns against simulated ones. A network is simulated for longer until half the
95 % confidence interval of its mean is below 1 %, or for six million visits; ``mmk_noise_p50`` is the noise that is
left.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.station import Station, StationModel
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.event_simulator.distribution import Distribution
from headgate_benchmarks.event_simulator.queueing_network import simulate
from headgate_benchmarks.random_networks import general_network, jackson_network
from headgate_benchmarks.study import Conclusion, Measured, Progress, Row, Study

if TYPE_CHECKING:
    from headgate_benchmarks.event_simulator.queueing_network import Simulated
    from headgate_benchmarks.random_networks import Workload

__all__ = ["QUEUEING"]

NOISE = 0.01


@dataclass(frozen=True, slots=True)
class Sizes:
    jackson: int = 200
    meeting: int = 40
    general: int = 120
    visits: tuple[int, ...] = (500_000, 2_000_000, 6_000_000)
    case_tuples: int = 1_000_000
    line_tuples: tuple[int, int] = (1_000_000, 20_000)
    """Of our simulator, and of the other two."""

    repeats: tuple[int, int] = (500, 9)
    """Of the small and of the large assignment."""


@dataclass(frozen=True, slots=True)
class _Networks:
    """Random networks of one kind, and the models that predict them by the names of their figures."""

    kind: str
    count: int
    make: Callable[[], Workload]
    models: dict[str, StationModel]


def _fidelity(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    rng = np.random.default_rng(seed)
    general = {
        "ggk_by_mmk" if each is StationModel.MMK else each.value.replace("-", "_"): each for each in StationModel
    }
    worlds = [
        _Networks("mmk", sizes.jackson, lambda: jackson_network(rng), {"mmk": StationModel.MMK}),
        _Networks(
            "meeting", sizes.meeting, lambda: jackson_network(rng, meet_again=True), {"meeting_mmk": StationModel.MMK}
        ),
        _Networks("ggk", sizes.general, lambda: general_network(rng), general),
    ]

    def trials(world: _Networks) -> Iterator[Row]:
        for place in range(world.count):
            if place % 20 == 0:
                progress(f"{world.kind}: network {place + 1} of {world.count}")
            yield {"kind": world.kind} | _errors(world.make(), world.models, seed * 100_000 + place, sizes)

    measured = Study("fidelity", trials, _conclude).run(worlds, progress)
    return measured | Measured({"networks": sizes.jackson})


def _conclude(rows: Sequence[Row]) -> Conclusion:
    conclusion = Conclusion()
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        for name in mine[0]["errors"]:
            errors, tails = (np.abs([row[key][name] for row in mine]) for key in ("errors", "tail_errors"))
            for p in (50, 95):
                conclusion.figures[f"{name}_error_p{p}"] = float(np.quantile(errors, p / 100))
            conclusion.figures[f"{name}_tail_error_p50"] = float(np.median(tails))
        conclusion.figures[f"{kind}_noise_p50"] = float(np.median([row["noise"] for row in mine]))
    return conclusion


def _errors(workload: Workload, models: dict[str, StationModel], seed: int, sizes: Sizes) -> Row:
    from headgate.queueing.predict import predict

    seen = _simulated(workload, seed, sizes)
    predicted = {name: predict(workload.network, workload.allocation, model) for name, model in models.items()}
    tail_s = seen.percentile_s(0.95)
    return {
        "noise": seen.error_s / seen.mean_s,
        "errors": {name: each.mean_s / seen.mean_s - 1 for name, each in predicted.items()},
        "tail_errors": {name: each.percentile_s(0.95) / tail_s - 1 for name, each in predicted.items()},
    }


def _simulated(workload: Workload, seed: int, sizes: Sizes) -> Simulated:
    from headgate.queueing.traffic import solve_traffic

    per_tuple = float(solve_traffic(workload.network).visits.sum())
    for visits in sizes.visits:
        tuples = max(1_000, round(visits / per_tuple))
        seen = simulate(
            workload.network, workload.allocation, tuples, seed, service=workload.service, bulks=workload.bulks
        )
        if seen.error_s <= NOISE * seen.mean_s:
            break
    return seen


def _case(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Seven processors for logo detection: bulks of features make the matcher's queue longer than M/M/k predicts."""
    from headgate.queueing.sizing import assign_processors

    progress("the case of (3:3:1) and (2:4:1)")
    frames, features, scv = 5.0, 4.0, 1.5
    gaps = Distribution.uniform(0.5 / frames, 1.5 / frames)
    network = Network(
        (
            Operator("extract", frames / 1.7, scv, frames, gaps.scv),
            Operator("match", frames * features / 2.5, scv),
            Operator("aggregate", 40 * frames),
        ),
        (Route("extract", "match", features), Route("match", "aggregate", 1 / features)),
    )
    service = {
        "extract": Distribution.lognormal(1.7 / frames, scv),
        "match": Distribution.lognormal(2.5 / frames / features, scv),
    }
    seen = {
        ":".join(map(str, split)): simulate(
            network, split, sizes.case_tuples, seed, service=service, arrivals={"extract": gaps}
        )
        for split in ((2, 4, 1), (3, 3, 1))
    }
    choice = {model: ":".join(map(str, assign_processors(network, 7, model).allocation)) for model in StationModel}
    figures = {
        "case_mmk_choice": choice[StationModel.MMK],
        "case_ggk_choice": choice[StationModel.GGK],
        "case_right_choice": min(seen, key=lambda split: seen[split].mean_s),
        "case_241_s": seen["2:4:1"].mean_s,
        "case_331_s": seen["3:3:1"].mean_s,
    }
    return Measured(figures, {"case_noise_s": [each.error_s for each in seen.values()]})


def _optimisers(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    import random

    from headgate.queueing.sizing import SizingProblem, assign_to

    progress("optimisers")

    def problem(loads: list[float]) -> SizingProblem:
        stations = tuple(Station(f"o{place}", load, 1.0) for place, load in enumerate(loads))
        return SizingProblem(stations, (1.0,) * len(loads), np.zeros((1, 1)), StationModel.MMK)

    rng = random.Random(seed)
    small = problem([30.0, 45.0, 20.0])
    large = problem([rng.uniform(1, 100) for _ in range(1_000)])
    assign_to(large, 100_000)  # compiles
    quick = [_took(lambda: assign_to(small, 192)) for _ in range(sizes.repeats[0])]
    slow = [_took(lambda: assign_to(large, 100_000)) for _ in range(sizes.repeats[1])]
    figures = {
        "assign_3_operators_192_us": 1e6 * statistics.median(quick),
        "assign_1000_operators_100000_ms": 1e3 * statistics.median(slow),
    }
    return Measured(figures, {"assign_small_s": quick, "assign_large_s": slow})


def _took(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _simulators(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """A line of five M/M/3 queues at utilisation 0.8, by three simulators in turn; visits per second of CPU time."""
    from headgate.queueing.mmk import wait_mean
    from headgate_benchmarks import other_simulators

    stages, servers, rate = 5, 3, 2.4
    line = Network(
        tuple(Operator(f"s{i}", 1.0, arrival_rate_per_s=rate if i == 0 else 0.0) for i in range(stages)),
        tuple(Route(f"s{i}", f"s{i + 1}") for i in range(stages - 1)),
    )
    most, few = sizes.line_tuples

    def ours(seed: int) -> tuple[int, float]:
        seen = simulate(line, [servers] * stages, most, seed)
        return seen.visits, seen.mean_s

    simulators: dict[str, Callable[[int], tuple[int, float]]] = {
        "headgate": ours,
        "simpy": lambda seed: other_simulators.simpy_line(stages, servers, rate, few, seed),
        "ciw": lambda seed: other_simulators.ciw_line(stages, servers, rate, few, seed),
    }
    simulate(line, [servers] * stages, 1_000, seed)  # compiles
    speeds: dict[str, list[float]] = {name: [] for name in simulators}
    means: dict[str, list[float]] = {name: [] for name in simulators}
    for turn in range(3):
        progress(f"simulators, round {turn + 1} of 3")
        for name, run in simulators.items():
            started = time.process_time()
            visits, mean = run(seed + turn)
            speeds[name].append(visits / (time.process_time() - started))
            means[name].append(mean)
    typical = {name: statistics.median(each) for name, each in speeds.items()}
    figures: dict[str, Any] = {
        "simulator_visits_per_s": typical["headgate"],
        "simulator_times_simpy": typical["headgate"] / typical["simpy"],
        "simulator_times_ciw": typical["headgate"] / typical["ciw"],
        "line_exact_s": stages * (float(wait_mean(servers, rate, 1.0)) + 1.0),
        **{f"line_{name}_s": statistics.fmean(each) for name, each in means.items()},
    }
    return Measured(figures, {"visits_per_s": speeds, "line_means_s": means})


QUEUEING = Benchmark(
    "queueing",
    "The error of queueing models beside simulation, and the speed of both.",
    {"simulators": _simulators, "optimisers": _optimisers, "case": _case, "fidelity": _fidelity},
    Sizes(),
    Sizes(4, 2, 4, (20_000,), 20_000, (20_000, 2_000), (20, 2)),
    "mmk_error_p50 mmk_error_p95 ggk_error_p50 ggk_by_mmk_error_p50 meeting_mmk_error_p95 *_tail_error_p50 "
    "mmk_noise_p50 ggk_noise_p50 networks case_*_choice case_241_s case_331_s assign_3_operators_192_us "
    "assign_1000_operators_100000_ms simulator_visits_per_s simulator_times_simpy simulator_times_ciw line_*_s",
)
