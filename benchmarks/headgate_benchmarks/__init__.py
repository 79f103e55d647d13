"""Benchmarks as commands: each claim in the documentation names the one that reproduces it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Any

from headgate import __version__
from headgate_benchmarks.adapt.benchmark import ADAPT
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.chains import CHAINS
from headgate_benchmarks.console import CONSOLE
from headgate_benchmarks.crash import CRASH
from headgate_benchmarks.deploy.benchmark import DEPLOY
from headgate_benchmarks.drs.benchmark import DRS
from headgate_benchmarks.forecast import FORECAST
from headgate_benchmarks.join import JOIN
from headgate_benchmarks.kafka.benchmark import KAFKA
from headgate_benchmarks.linear_road.benchmark import LINEAR_ROAD
from headgate_benchmarks.lookahead.benchmark import LOOKAHEAD
from headgate_benchmarks.model import MODEL
from headgate_benchmarks.nexmark.benchmark import NEXMARK
from headgate_benchmarks.observe import OBSERVE
from headgate_benchmarks.plan import PLAN
from headgate_benchmarks.queueing import QUEUEING
from headgate_benchmarks.riotbench.benchmark import APPS
from headgate_benchmarks.runtime import RUNTIME
from headgate_benchmarks.scale import SCALE
from headgate_benchmarks.sharing import SHARING
from headgate_benchmarks.simulate import SIMULATE
from headgate_benchmarks.smoke import smoke_all
from headgate_benchmarks.state import STATE
from headgate_benchmarks.study import Measured
from headgate_benchmarks.tenants.running import TENANTS

__all__ = ["BENCHMARKS", "report", "smoke_all"]

BENCHMARKS: Mapping[str, Benchmark[Any]] = {
    each.name: each
    for each in (
        *(
            ADAPT,
            APPS,
            CHAINS,
            CONSOLE,
            CRASH,
            DEPLOY,
            DRS,
            FORECAST,
            JOIN,
            KAFKA,
            LINEAR_ROAD,
            LOOKAHEAD,
            MODEL,
            NEXMARK,
            OBSERVE,
            PLAN,
            QUEUEING,
            RUNTIME,
            SCALE,
        ),
        *(SHARING, SIMULATE, STATE, TENANTS),
    )
}


def report(benchmark: Benchmark[Any], measured: Measured, seed: int, *, smoke: bool = False) -> dict[str, Any]:
    """The result of a benchmark as JSON, with the machine that it was measured on."""
    figures = {key: round(value, 5) if isinstance(value, float) else value for key, value in measured.figures.items()}
    return {
        "bench": benchmark.name,
        **({"smoke": True} if smoke else {}),
        **figures,
        "figures": figures,
        "seed": seed,
        "headgate": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        **({"versions": measured.versions} if measured.versions else {}),
        **({"notes": measured.notes} if measured.notes else {}),
        "samples": measured.samples,
    }
