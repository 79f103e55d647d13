"""The benchmarks of a checkout, found through the entry point group ``headgate.benchmarks``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from headgate.errors import InputError, unknown
from headgate.model.table import Table, TableColumn

__all__ = ["benchmark_table", "benchmarks", "figures_table", "find_benchmark"]

GROUP = "headgate.benchmarks"


def benchmarks() -> Mapping[str, Any]:
    """All benchmarks by name; raises :class:`InputError` where none are installed."""
    installed = [entry.load() for entry in entry_points(group=GROUP)]
    if not installed:
        message = "benchmarks come with a checkout of the repository, not with the package; see CONTRIBUTING.md there"
        raise InputError("NO_BENCHMARKS", message)
    return {name: each for group in installed for name, each in group.items()}


def find_benchmark(name: str) -> Any:
    """The benchmark of that name; raises :class:`InputError` with the nearest name if there is none."""
    known = benchmarks()
    if name not in known:
        raise unknown("UNKNOWN_BENCHMARK", f"unknown benchmark {name[:60]!r}", name, known)
    return known[name]


def benchmark_table() -> Table:
    """The benchmarks and what each measures."""
    rows = tuple({"name": each.name, "summary": each.summary} for each in benchmarks().values())
    return Table("Benchmarks", (TableColumn("name", "benchmark"), TableColumn("summary", "what it measures")), rows)


def figures_table(figures: Mapping[str, Any]) -> Table:
    """Figures of a benchmark, one in a row."""
    rows = tuple({"figure": name, "value": value} for name, value in figures.items())
    return Table("Figures", (TableColumn("figure", "figure"), TableColumn("value", "value", form=",.6g")), rows)
