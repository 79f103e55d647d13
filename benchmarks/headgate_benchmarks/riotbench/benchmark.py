"""``headgate bench apps``: RIoTBench's ETL and STATS on Headgate, in PySpark by hand, in Flink SQL and in bytewax.

Every system runs each application twice, in processes of its own, over the same files: over few events and over many.
The CPU of all its processes is read when the last row is out. What the second run takes more than the first is what
events cost beyond start-up; it is told for a million. ``same_rows`` tells which share of the rows is the same as
Headgate's, on the run over few.

ETL is in the form with a row for each record (``etl_wide.yaml``), which is how the others write it too;
``etl_fields`` is the form with a row for each value (``etl.yaml``), on Headgate alone.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headgate.report.text_table import text_table
from headgate_benchmarks.beyond_start_up import Cost
from headgate_benchmarks.measured import Measured
from headgate_benchmarks.peer_packages import PINNED, peer_python
from headgate_benchmarks.riotbench.data import charts_of, put_records, rows_of, same_charts, same_rows
from headgate_benchmarks.riotbench.on_headgate import examples
from headgate_benchmarks.riotbench.running import HERE, Ran, ran

__all__ = ["PARTS", "run"]

EVENTS = {"etl": (1_500_000, 4_500_000), "etl_fields": (20_000, 100_000), "stats": (2_000, 5_000)}
"""How many events the two runs of an application are over: so many that what the JVM compiles falls into the first.

STATS draws a chart for every other event."""

PER_FILE = {"etl": 500_000, "etl_fields": 20_000, "stats": 1_000}
"""Events that come together, in two files or, for STATS, in one: a micro-batch of Spark."""

START = "import sys; from headgate_benchmarks.riotbench.on_headgate import main; main(*sys.argv[1:])"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Found:
    """What an application costs on a system, and which share of its rows is the same as Headgate's."""

    cost: Cost
    versions: Mapping[str, str]
    same: float = 1.0
    rows: int = 0


@dataclass
class _Bench:
    """A folder for all runs, and what has been found."""

    folder: Path
    seed: int
    progress: Progress
    peers: Path | None
    found: dict[str, dict[str, Found]] = field(default_factory=dict)
    """By application and system."""

    def run(self, app: str, systems: Sequence[str]) -> None:
        few, many = EVENTS[app]
        for size in (few, many):
            self.put(app, size)
        baseline: Any = None
        for system in systems:
            less, more = (self.ran(app, system, size) for size in (few, many))
            made = self.made(app, system, few)
            baseline = made if baseline is None else baseline
            same = same_charts(baseline, made) if app == "stats" else same_rows(baseline, made)
            cost = Cost((less.cpu_s, more.cpu_s), (less.wall_s, more.wall_s), (few, many))
            self.found.setdefault(app, {})[system] = Found(cost, more.versions, same, len(made))
            self.progress(f"{app} on {system}: {cost.cpu_s_per_million:,.1f} CPU s per million events")

    def put(self, app: str, count: int) -> None:
        """Write the events that all systems read."""
        self.progress(f"{app}: {count:,} events")
        numbered, logs = app != "etl", 1 if app == "stats" else 2
        put_records(self._place(app, count, "in"), count, self.seed, PER_FILE[app], numbered=numbered, logs=logs)

    def _place(self, app: str, count: int, what: str) -> Path:
        return self.folder / app / str(count) / what

    def ran(self, app: str, system: str, count: int) -> Ran:
        """Run a system over them."""
        source, out = self._place(app, count, "in"), self._place(app, count, system)
        out.mkdir(parents=True)
        log = out.with_suffix(".log")
        if system == "headgate":
            name = {"etl": "etl_wide", "etl_fields": "etl"}.get(app, app)
            return ran(Path(sys.executable), ["-c", START, name, source, out], log)
        python = Path(sys.executable) if system == "pyspark" else self.peers
        assert python is not None
        return ran(python, [HERE / f"{system}_{app}.py", source, out, examples() / "tables"], log)

    def made(self, app: str, system: str, count: int) -> Any:
        """What it has put out."""
        out = self._place(app, count, system)
        return charts_of(out / "charts") if app == "stats" else rows_of(out / "rows")


@contextmanager
def _benching(seed: int, progress: Progress, *, peers: bool) -> Iterator[_Bench]:
    examples()
    matplotlib = f"matplotlib=={version('matplotlib')}"
    python = peer_python(progress, (*PINNED, matplotlib)) if peers else None
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    try:
        yield _Bench(folder, seed, progress, python)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(seed: int, progress: Progress) -> Measured:
    """ETL and STATS on all systems."""
    with _benching(seed, progress, peers=True) as bench:
        bench.run("etl", ("headgate", "pyspark", "flink", "bytewax"))
        bench.run("stats", ("headgate", "pyspark", "bytewax"))
        bench.run("etl_fields", ("headgate",))
        return _measured(bench.found)


def _spark(seed: int, progress: Progress) -> Measured:
    """ETL and STATS on Headgate and in PySpark: needs nothing that is not installed."""
    with _benching(seed, progress, peers=False) as bench:
        for app in ("etl", "stats"):
            bench.run(app, ("headgate", "pyspark"))
        return _measured(bench.found)


def _etl(seed: int, progress: Progress) -> Measured:
    with _benching(seed, progress, peers=True) as bench:
        bench.run("etl", ("headgate", "pyspark", "flink", "bytewax"))
        return _measured(bench.found)


PARTS: Mapping[str, Callable[[int, Progress], Measured]] = {"spark": _spark, "etl": _etl}


def _measured(found: Mapping[str, Mapping[str, Found]]) -> Measured:
    figures: dict[str, float] = {}
    versions: dict[str, str] = {}
    samples: dict[str, Any] = {}
    for app, by_system in found.items():
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
    by_app = [figures[f"{app}_cpu_vs_pyspark"] for app in found if "pyspark" in found[app]]
    figures["cpu_vs_pyspark"] = max(by_app)
    for system in ("flink", "bytewax"):
        if f"etl_cpu_vs_{system}" in figures:
            figures[f"cpu_vs_{system}"] = figures[f"etl_cpu_vs_{system}"]
    figures["same_rows"] = min(one.same for by_system in found.values() for one in by_system.values())
    return Measured(
        {name: round(value, 4) for name, value in figures.items()}, samples, _table(found, versions), versions
    )


def _table(found: Mapping[str, Mapping[str, Found]], versions: Mapping[str, str]) -> str:
    rows = [["application", "system", "CPU s per million", "Headgate's of it", "events/s", "same rows"]]
    for app, by_system in found.items():
        own = by_system["headgate"].cost.cpu_s_per_million
        for system, one in by_system.items():
            cost, ratio = one.cost, own / one.cost.cpu_s_per_million
            told = [f"{cost.cpu_s_per_million:,.1f}", f"{ratio:.2f}", f"{cost.events_per_s:,.0f}", f"{one.same:.4f}"]
            rows.append([app, system, *told])
    told_versions = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    return text_table(rows, right=range(2, 6)) + told_versions + "\n"
