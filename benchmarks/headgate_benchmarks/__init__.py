"""Benchmarks as commands: each claim in the documentation names the one that reproduces it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate import __version__
from headgate_benchmarks import (
    forecast,
    model,
    nexmark,
    observe,
    plan,
    plan_plots,
    queueing,
    runtime,
    scale,
    sharing,
    sharing_plots,
    sharing_spark,
    simulate,
    simulate_spark,
)
from headgate_benchmarks.drs import benchmark as drs
from headgate_benchmarks.drs import plots as drs_plots
from headgate_benchmarks.linear_road import benchmark as linear_road
from headgate_benchmarks.linear_road import plots as linear_road_plots
from headgate_benchmarks.lookahead import benchmark as lookahead
from headgate_benchmarks.lookahead import plots as lookahead_plots
from headgate_benchmarks.measured import Measured
from headgate_benchmarks.nexmark import plots as nexmark_plots
from headgate_benchmarks.riotbench import benchmark as apps
from headgate_benchmarks.riotbench import plots as apps_plots

__all__ = ["BENCHMARKS", "Benchmark", "report"]

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: ``run(seed, progress)`` returns figures and samples."""

    name: str
    summary: str
    run: Callable[[int, Progress], Measured] = field(repr=False)
    plot: Callable[[Measured, Path], list[Path]] | None = field(default=None, repr=False)
    """Draws what was measured into files of a folder."""

    parts: Mapping[str, Callable[[int, Progress], Measured]] = field(default_factory=dict, repr=False)
    """What of it can be run alone."""


BENCHMARKS: Mapping[str, Benchmark] = {
    "apps": Benchmark(
        "apps",
        "RIoTBench's applications beside PySpark by hand, Flink SQL and bytewax.",
        apps.run,
        apps_plots.plot,
        apps.PARTS,
    ),
    "drs": Benchmark(
        "drs",
        "Processors on live Spark: predicted and measured, and the policy at work.",
        drs.run,
        drs_plots.plot,
        drs.PARTS,
    ),
    "forecast": Benchmark(
        "forecast",
        "How good forecasters are on rates and machines, how honest their intervals, and how quick.",
        forecast.run,
        parts={"speed": forecast.speed, "accuracy": forecast.accuracy},
    ),
    "linearroad": Benchmark(
        "linearroad",
        "Expressways held with every answer of Linear Road right and in time.",
        linear_road.run,
        linear_road_plots.plot,
    ),
    "lookahead": Benchmark(
        "lookahead",
        "What looking ahead brings, by how far and how well one sees.",
        lookahead.run,
        lookahead_plots.plot,
        lookahead.PARTS,
    ),
    "model": Benchmark("model", "Reading, checking and signing dataflows of 1,000 to 100,000 tasks.", model.run),
    "nexmark": Benchmark(
        "nexmark",
        "Nexmark's queries beside Spark by hand and Flink, and all of them merged.",
        nexmark.run,
        nexmark_plots.plot,
        nexmark.PARTS,
    ),
    "observe": Benchmark(
        "observe",
        "What measuring costs while dataflows run, and how true it is.",
        observe.run,
        parts=observe.PARTS,
    ),
    "plan": Benchmark(
        "plan",
        "How good plans are, how quickly they are made, and what adapting them brings.",
        plan.run,
        plan_plots.plot,
        plan.PARTS,
    ),
    "queueing": Benchmark(
        "queueing", "How near queueing models come to simulation, and how quick both are.", queueing.run
    ),
    "runtime": Benchmark("runtime", "What running dataflows on Spark costs, and how quick changes are.", runtime.run),
    "scale": Benchmark("scale", "What more machines give, and how long they take to come.", scale.run),
    "sharing": Benchmark(
        "sharing",
        "How quick merging is, and what each strategy saves.",
        sharing.run,
        sharing_plots.plot,
        {"merging": sharing.merging, "spark": sharing_spark.run},
    ),
    "simulate": Benchmark(
        "simulate",
        "How quick the simulator of dataflows is, what memory it takes, and how near it is to a live run.",
        simulate.run,
        parts={"speed": simulate.speed, "spark": simulate_spark.run},
    ),
}


def report(benchmark: Benchmark, measured: Measured, seed: int) -> dict[str, Any]:
    """What a benchmark measured, with what it was measured on."""
    return {
        "bench": benchmark.name,
        **measured.figures,
        "figures": measured.figures,
        "seed": seed,
        "headgate": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        **({"versions": measured.versions} if measured.versions else {}),
        **({"notes": measured.notes} if measured.notes else {}),
        "samples": measured.samples,
    }
