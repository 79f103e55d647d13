"""``headgate bench apps``: RIoTBench's ETL and STATS on Headgate, in PySpark by hand, in Flink SQL and in bytewax.

Every system runs each application twice, in processes of its own, over the same files: over few events and over many.
The CPU of all its processes is read when the last row is out. The difference of the two runs is the cost of events
beyond start-up, for a million. ``same_rows`` is the share of rows that equal Headgate's, of the run over few.

ETL is in the form with a row for each record (``etl_wide.yaml``), which is how the others write it too;
``etl_fields`` is the form with a row for each value (``etl.yaml``), on Headgate only.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headgate.model.table import Table
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.beyond_start_up import Cost
from headgate_benchmarks.checkout import example
from headgate_benchmarks.figures import dress, picture
from headgate_benchmarks.on_spark import QUICK_JVM
from headgate_benchmarks.peer_packages import PINNED, installed_peers, peer_python
from headgate_benchmarks.riotbench.data import charts_of, put_records, rows_of, same_charts, same_rows
from headgate_benchmarks.riotbench.running import HERE, Ran, ran
from headgate_benchmarks.study import Measured, Progress, columns

__all__ = ["APPS", "AppCost", "AppRuns", "Sizes", "measured"]

START = "import sys; from headgate_benchmarks.riotbench.on_headgate import main; main(*sys.argv[1:])"
SYSTEMS = {
    "etl": ("headgate", "pyspark", "flink", "bytewax"),
    "stats": ("headgate", "pyspark", "bytewax"),
    "etl_fields": ("headgate",),
}
SHOWN = {"headgate": "Headgate", "pyspark": "PySpark", "flink": "Flink SQL", "bytewax": "bytewax"}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Events of the two runs of each application, so many that the JVM compiles in the first; 0: only the second run.

    STATS draws a chart for every other event. ``per_file`` events come together, in two files or, for STATS, in one: a
    micro-batch of Spark. ``installs`` other systems; otherwise those are measured that are installed.
    """

    events: Mapping[str, tuple[int, int]] = field(
        default_factory=lambda: {
            "etl": (1_500_000, 4_500_000),
            "etl_fields": (20_000, 100_000),
            "stats": (2_000, 5_000),
        }
    )
    per_file: Mapping[str, int] = field(default_factory=lambda: {"etl": 500_000, "etl_fields": 20_000, "stats": 1_000})
    installs: bool = True
    java: str = ""
    """Options of the systems' JVMs."""


@dataclass(frozen=True, slots=True)
class AppCost:
    """The cost of an application on a system, and the share of its rows that equal Headgate's."""

    cost: Cost
    versions: Mapping[str, str]
    same: float = 1.0
    rows: int = 0


@dataclass
class AppRuns:
    """A folder for all runs, and their costs."""

    folder: Path
    seed: int
    progress: Progress
    peers: Path | None
    sizes: Sizes
    costs: dict[str, dict[str, AppCost]] = field(default_factory=dict)
    """By application and system."""

    def measure(self, app: str) -> None:
        """Run an application on all systems that are there."""
        few, many = self.sizes.events[app]
        for size in filter(None, (few, many)):
            self.put(app, size)
        baseline: Any = None
        for system in SYSTEMS[app]:
            if system in ("flink", "bytewax") and self.peers is None:
                continue
            less = self.run(app, system, few) if few else Ran(0.0, 0.0, {})
            more = self.run(app, system, many)
            output = self.output(app, system, few or many)
            baseline = output if baseline is None else baseline
            same = same_charts(baseline, output) if app == "stats" else same_rows(baseline, output)
            cost = Cost((less.cpu_s, more.cpu_s), (less.wall_s, more.wall_s), (few, many))
            self.costs.setdefault(app, {})[system] = AppCost(cost, more.versions, same, len(output))
            self.progress(f"{app} on {system}: {cost.cpu_s_per_million:,.1f} CPU s per million events")

    def put(self, app: str, count: int) -> None:
        """Write the events that all systems read."""
        self.progress(f"{app}: {count:,} events")
        numbered, logs, per_file = app != "etl", 1 if app == "stats" else 2, self.sizes.per_file[app]
        put_records(self._place(app, count, "in"), count, self.seed, per_file, numbered=numbered, logs=logs)

    def _place(self, app: str, count: int, what: str) -> Path:
        return self.folder / app / str(count) / what

    def run(self, app: str, system: str, count: int) -> Ran:
        """Run a system over so many events."""
        source, out = self._place(app, count, "in"), self._place(app, count, system)
        out.mkdir(parents=True)
        log = out.with_suffix(".log")
        if system == "headgate":
            name = {"etl": "etl_wide", "etl_fields": "etl"}.get(app, app)
            return ran(Path(sys.executable), ["-c", START, name, source, out], log, self.sizes.java)
        python = Path(sys.executable) if system == "pyspark" else self.peers
        assert python is not None
        program = [HERE / f"{system}_{app}.py", source, out, example("riotbench/tables")]
        return ran(python, program, log, self.sizes.java)

    def output(self, app: str, system: str, count: int) -> Any:
        """The rows or charts of a run."""
        out = self._place(app, count, system)
        return charts_of(out / "charts") if app == "stats" else rows_of(out / "rows")


@contextmanager
def _runs(seed: int, progress: Progress, sizes: Sizes, *, peers: bool) -> Iterator[AppRuns]:
    pinned = (*PINNED, f"matplotlib=={version('matplotlib')}")
    python = None
    if peers:
        python = peer_python(progress, pinned) if sizes.installs else installed_peers(pinned)
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    try:
        yield AppRuns(folder, seed, progress, python, sizes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _whole(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """All applications on all systems."""
    with _runs(seed, progress, sizes, peers=True) as runs:
        for app in SYSTEMS:
            runs.measure(app)
        return measured(runs.costs)


def _spark(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """ETL and STATS on Headgate and in PySpark: needs nothing that is not installed."""
    with _runs(seed, progress, sizes, peers=False) as runs:
        for app in ("etl", "stats"):
            runs.measure(app)
        return measured(runs.costs)


def _etl(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    with _runs(seed, progress, sizes, peers=True) as runs:
        runs.measure("etl")
        return measured(runs.costs)


def measured(costs: Mapping[str, Mapping[str, AppCost]]) -> Measured:
    """Figures, samples and table from the costs by application and system."""
    figures: dict[str, float] = {}
    versions: dict[str, str] = {}
    samples: dict[str, Any] = {}
    for app, by_system in costs.items():
        own = by_system["headgate"].cost
        for system, one in by_system.items():
            cost = one.cost
            figures[f"{app}_cpu_s_per_million_{system}"] = cost.cpu_s_per_million
            figures[f"{app}_events_per_s_{system}"] = cost.events_per_s
            if system != "headgate":
                figures[f"{app}_same_rows_{system}"] = one.same
                figures[f"{app}_cpu_vs_{system}"] = own.cpu_s_per_million / cost.cpu_s_per_million
            versions |= one.versions
            samples.setdefault(app, {})[system] = {**asdict(cost), "rows": one.rows}
    figures["cpu_vs_pyspark"] = max(figures[f"{app}_cpu_vs_pyspark"] for app in costs if "pyspark" in costs[app])
    for system in ("flink", "bytewax"):
        if f"etl_cpu_vs_{system}" in figures:
            figures[f"cpu_vs_{system}"] = figures[f"etl_cpu_vs_{system}"]
    figures["same_rows"] = min(one.same for by_system in costs.values() for one in by_system.values())
    return Measured(figures, samples, (_table(costs, versions),), versions)


def _table(costs: Mapping[str, Mapping[str, AppCost]], versions: Mapping[str, str]) -> Table:
    shown = columns(
        ("app", "application"),
        ("system", "system"),
        ("cpu_s", "CPU per million", "s", ",.1f"),
        ("ratio", "Headgate's of it", "", ".2f"),
        ("rate", "events/s", "", ",.0f"),
        ("same", "same rows", "", ".4f"),
    )
    rows = [
        {
            "app": app,
            "system": system,
            "cpu_s": one.cost.cpu_s_per_million,
            "ratio": by_system["headgate"].cost.cpu_s_per_million / one.cost.cpu_s_per_million,
            "rate": one.cost.events_per_s,
            "same": one.same,
        }
        for app, by_system in costs.items()
        for system, one in by_system.items()
    ]
    note = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    return Table("RIoTBench, beyond start-up", shown, tuple(rows), (note,))


def _plot(measured: Measured, folder: Path) -> list[Path]:
    """CPU seconds per million events of each application, system by system."""
    apps = [app for app in ("etl", "stats") if app in measured.samples]

    def draw(figure: Any) -> None:
        for axes, app in zip(figure.subplots(1, len(apps), squeeze=False)[0], apps, strict=True):
            values = {
                SHOWN[system]: measured.figures[f"{app}_cpu_s_per_million_{system}"]
                for system in SHOWN
                if system in measured.samples[app]
            }
            shades = ["#1b6ca8" if name == "Headgate" else "#9aa5b1" for name in values]
            drawn = axes.barh(list(values), list(values.values()), color=shades)
            axes.bar_label(drawn, [f"{value:,.1f}" for value in values.values()], padding=3)
            axes.invert_yaxis()
            axes.set_xlim(0, 1.18 * max(values.values()))
            dress(axes, f"RIoTBench {app.upper()}", "CPU seconds per million events, beyond start-up")

    return [picture(folder / "apps_cpu.svg", (4.5 * len(apps), 3.2), draw)]


_SMALL = {"etl": 200, "etl_fields": 50, "stats": 16}
APPS = Benchmark(
    "apps",
    "RIoTBench's applications beside PySpark by hand, Flink SQL and bytewax.",
    {"spark": _spark, "etl": _etl},
    Sizes(),
    Sizes({app: (0, count) for app, count in _SMALL.items()}, _SMALL, installs=False, java=QUICK_JVM),
    "etl_cpu_s_per_million_headgate etl_cpu_s_per_million_pyspark etl_events_per_s_headgate etl_cpu_vs_pyspark "
    "etl_same_rows_pyspark stats_cpu_s_per_million_headgate stats_cpu_s_per_million_pyspark stats_cpu_vs_pyspark "
    "stats_same_rows_pyspark etl_fields_cpu_s_per_million_headgate etl_fields_events_per_s_headgate cpu_vs_pyspark "
    "same_rows",
    _plot,
    _whole,
)
