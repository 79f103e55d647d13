"""``headgate bench deploy``: from a rate to machines, on P-DEPLOY's applications, in a simulated cloud.

Part ``targets`` deploys linear, diamond, star, word count and Twitter sentiment, with operators of all four kinds, to
2,000, 3,000 and 6,000 rows/s within 500 ms: ``reached``, ``iterations_*``, predicted CPU and throughput beside what was
simulated, and on the same instances the machines of first-fit, METIS, R-Storm, round robin and the exact program
(Fig. 12). Part ``observed`` is Observations 1 and 2, ``scaling`` Figs. 10 and 11 and Table 5 with profiles that are too
low at first, as the paper's were, ``large`` a thousand instances. Nothing runs on
Spark; planning times are wall time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.study import Conclusion, Measured, Progress, Row, Study

__all__ = ["DEPLOY"]


@dataclass(frozen=True, slots=True)
class Sizes:
    targets: tuple[float, ...] = (2_000.0, 3_000.0, 6_000.0)
    names: tuple[str, ...] = ("linear", "diamond", "star", "word-count", "sentiment")
    exact_s: float = 5.0
    instances: int = 1_000
    rounds: int = 3


def _targets(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    from headgate_benchmarks.deploy.applications import applications
    from headgate_benchmarks.deploy.targets import conclude_targets, target_trials

    known = applications()
    worlds = [(name, rate) for name in sizes.names for rate in sizes.targets]

    def trials(world: tuple[str, float]) -> Iterator[Row]:
        return target_trials(known[world[0]], world[1], seed, sizes.exact_s)

    return Study("targets", trials, conclude_targets).run(worlds, progress)


def _observed(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    from headgate_benchmarks.deploy.observations import conclude_observed, observed_trials

    del sizes
    return Study("observed", observed_trials, conclude_observed).run([seed], progress)


def _scaling(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    from headgate_benchmarks.deploy.observations import conclude_scaling, scaling_cases, scaling_trials

    cases = [case for case in scaling_cases(sizes.targets) if case[1].name.partition("-")[0] in _stems(sizes)]
    return Study("scaling", partial(scaling_trials, seed=seed), conclude_scaling).run(cases, progress)


def _stems(sizes: Sizes) -> set[str]:
    return {name.partition("-")[0] for name in sizes.names}


def _large(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    from headgate_benchmarks.deploy.applications import linear
    from headgate_benchmarks.deploy.running import PAPER, planned

    del seed

    def trials(number: int) -> Iterator[Row]:
        application = linear(25, ("cpu", "io"), "large")
        each = sizes.instances // 25
        copies = {name: each for name in application.profiles if name.startswith("op")}
        # An instance of a CPU-bound operator takes about half a core.
        rate = each * 0.5 / 9e-4
        began = time.perf_counter()
        plan = planned(application, rate, "first-fit", PAPER, **copies)
        took = time.perf_counter() - began
        instances = int(plan.items.count.sum())
        yield {"round": number, "s": took, "instances": instances, "machines": plan.placement.machines}

    def conclude(rows: Sequence[Row]) -> Conclusion:
        seconds = statistics.median(row["s"] for row in rows)
        figures = {"large_s": seconds, "large_instances": rows[0]["instances"], "large_machines": rows[0]["machines"]}
        return Conclusion(figures)

    return Study("large", trials, conclude).run(range(sizes.rounds), progress)


def _plot(measured: Measured, folder: Path) -> list[Path]:
    from headgate_benchmarks.deploy.plots import plot

    return plot(measured, folder)


DEPLOY = Benchmark(
    "deploy",
    "From a rate to machines: iterations, machines beside METIS, R-Storm and the optimum, predictions.",
    {"targets": _targets, "observed": _observed, "scaling": _scaling, "large": _large},
    Sizes(),
    Sizes((300.0, 600.0), ("linear", "word-count"), 2.0, 100, 1),
    "reached targets iterations_median iterations_max planning_s_max cpu_off_p50 throughput_off_p50 throughput_off_max "
    "fewer_than_* more_than_* exact_proven above_exact_max finer_saves load_r2_min across_r2 "
    "across_over_beside copies_2_over_8 copies_2_over_16 "
    "scaling_reached scaling_cases scaling_iterations_max scaling_first_share_min "
    "scaling_planning_s_max large_s large_instances large_machines finding_fig12_fewer_machines finding_observation_* "
    "finding_fig10_11_reached finding_fig11_depth finding_table5_planning",
    _plot,
)
