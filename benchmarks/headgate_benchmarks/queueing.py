"""``headgate bench queueing``: how near the models come to the truth, and how quick models and simulator are.

Errors are those of predicted mean sojourns against simulated ones. A network is simulated for longer until the noise
of its mean, half the 95 % confidence interval, is below 1 %, or for six million visits; what noise is left is told as
``mmk_noise_p50``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.measured import Measured

if TYPE_CHECKING:
    from headgate.queueing.station import StationModel
    from headgate_benchmarks.event_simulator.queueing_network import Simulated
    from headgate_benchmarks.random_networks import Workload

__all__ = ["run"]

NETWORKS = 200
MEETING, GENERAL = 40, 120
VISITS = (500_000, 2_000_000, 6_000_000)
NOISE = 0.01

Progress = Callable[[str], None]


def run(seed: int, progress: Progress) -> Measured:
    """Measure fidelity, the paper's case, the optimisers and the simulator."""
    figures: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    for measure in (_speed_of_simulator, _speed_of_optimisers, _the_case, _fidelity):
        found, raw = measure(seed, progress)
        figures |= found
        samples |= raw
    return Measured({key: round(v, 5) if isinstance(v, float) else v for key, v in figures.items()}, samples)


def _fidelity(seed: int, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
    import numpy as np

    from headgate.queueing.station import StationModel
    from headgate_benchmarks.random_networks import general_network, jackson_network

    rng = np.random.default_rng(seed)
    figures: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    sets: list[tuple[str, int, Callable[[], Workload], list[StationModel]]] = [
        ("mmk", NETWORKS, lambda: jackson_network(rng), [StationModel.MMK]),
        ("meeting", MEETING, lambda: jackson_network(rng, meet_again=True), [StationModel.MMK]),
        ("ggk", GENERAL, lambda: general_network(rng), list(StationModel)),
    ]
    for name, count, make, models in sets:
        rows = []
        for place in range(count):
            if place % 20 == 0:
                progress(f"{name}: network {place + 1} of {count}")
            workload = make()
            rows.append(_errors(workload, models, seed * 100_000 + place))
        errors = {key: [row[key] for row in rows] for key in rows[0]}
        samples[name] = errors
        for model in models:
            told = {"mmk": "mmk", "meeting": "meeting_mmk"}.get(name, model.value.replace("-", "_"))
            told = "ggk_by_mmk" if name == "ggk" and model is StationModel.MMK else told
            for p in (50, 95):
                figures[f"{told}_error_p{p}"] = float(np.quantile(np.abs(errors[model.value]), p / 100))
            figures[f"{told}_tail_error_p50"] = float(np.median(np.abs(errors[f"{model.value}_p95"])))
        figures[f"{name}_noise_p50"] = float(np.median(errors["noise"]))
    figures["networks"] = NETWORKS
    return figures, samples


def _errors(workload: Workload, models: list[StationModel], seed: int) -> dict[str, float]:
    from headgate.queueing.predict import predict

    seen = _simulated(workload, seed)
    row = {"noise": seen.error_s / seen.mean_s}
    for model in models:
        found = predict(workload.network, workload.allocation, model)
        row[model.value] = found.mean_s / seen.mean_s - 1
        row[f"{model.value}_p95"] = found.percentile_s(0.95) / seen.percentile_s(0.95) - 1
    return row


def _simulated(workload: Workload, seed: int) -> Simulated:
    from headgate.queueing.traffic import solve_traffic
    from headgate_benchmarks.event_simulator.queueing_network import simulate

    per_tuple = float(solve_traffic(workload.network).visits.sum())
    for visits in VISITS:
        tuples = max(1_000, round(visits / per_tuple))
        seen = simulate(
            workload.network, workload.allocation, tuples, seed, service=workload.service, bulks=workload.bulks
        )
        if seen.error_s <= NOISE * seen.mean_s:
            break
    return seen


def _the_case(seed: int, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
    """Seven processors for logo detection: bulks of features make the matcher's queue longer than M/M/k believes."""
    from headgate.queueing.network import Network, Operator, Route
    from headgate.queueing.sizing import assign_processors
    from headgate.queueing.station import StationModel
    from headgate_benchmarks.event_simulator.distribution import Distribution
    from headgate_benchmarks.event_simulator.queueing_network import simulate

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
            network, split, 1_000_000, seed, service=service, arrivals={"extract": gaps}
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
    return figures, {"case_noise_s": [each.error_s for each in seen.values()]}


def _speed_of_optimisers(seed: int, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
    import random

    import numpy as np

    from headgate.queueing.sizing import SizingProblem, assign_to
    from headgate.queueing.station import Station, StationModel

    progress("optimisers")

    def problem(loads: list[float]) -> SizingProblem:
        stations = tuple(Station(f"o{place}", load, 1.0) for place, load in enumerate(loads))
        return SizingProblem(stations, (1.0,) * len(loads), np.zeros((1, 1)), StationModel.MMK)

    rng = random.Random(seed)
    small = problem([30.0, 45.0, 20.0])
    large = problem([rng.uniform(1, 100) for _ in range(1_000)])
    assign_to(large, 100_000)  # compiles
    quick = [_took(lambda: assign_to(small, 192)) for _ in range(500)]
    slow = [_took(lambda: assign_to(large, 100_000)) for _ in range(9)]
    figures = {
        "assign_3_operators_192_us": 1e6 * statistics.median(quick),
        "assign_1000_operators_100000_ms": 1e3 * statistics.median(slow),
    }
    return figures, {"assign_small_s": quick, "assign_large_s": slow}


def _took(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _speed_of_simulator(seed: int, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
    """A line of five M/M/3 queues at utilisation 0.8, by three simulators in turn; visits per second of CPU time."""
    from headgate.queueing.mmk import wait_mean
    from headgate.queueing.network import Network, Operator, Route
    from headgate_benchmarks import other_simulators
    from headgate_benchmarks.event_simulator.queueing_network import simulate

    stages, servers, rate = 5, 3, 2.4
    line = Network(
        tuple(Operator(f"s{i}", 1.0, arrival_rate_per_s=rate if i == 0 else 0.0) for i in range(stages)),
        tuple(Route(f"s{i}", f"s{i + 1}") for i in range(stages - 1)),
    )
    simulate(line, [servers] * stages, 1_000, seed)  # compiles
    speeds: dict[str, list[float]] = {"headgate": [], "simpy": [], "ciw": []}
    means: dict[str, list[float]] = {"headgate": [], "simpy": [], "ciw": []}
    for turn in range(3):
        progress(f"simulators, round {turn + 1} of 3")
        started = time.process_time()
        seen = simulate(line, [servers] * stages, 1_000_000, seed + turn)
        speeds["headgate"].append(seen.visits / (time.process_time() - started))
        means["headgate"].append(seen.mean_s)
        for name, other in (("simpy", other_simulators.simpy_line), ("ciw", other_simulators.ciw_line)):
            started = time.process_time()
            visits, mean = other(stages, servers, rate, 20_000, seed + turn)
            speeds[name].append(visits / (time.process_time() - started))
            means[name].append(mean)
    typical = {name: statistics.median(each) for name, each in speeds.items()}
    figures = {
        "simulator_visits_per_s": typical["headgate"],
        "simulator_times_simpy": typical["headgate"] / typical["simpy"],
        "simulator_times_ciw": typical["headgate"] / typical["ciw"],
        "line_exact_s": stages * (float(wait_mean(servers, rate, 1.0)) + 1.0),
        **{f"line_{name}_s": statistics.fmean(each) for name, each in means.items()},
    }
    return figures, {"visits_per_s": speeds, "line_means_s": means}
