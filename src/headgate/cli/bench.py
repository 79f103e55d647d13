"""``headgate bench``: the benchmark behind each claim."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from headgate.cli.output import JsonAtEnd, print_json, sentence_to_stderr, step_to_stderr, write_file
from headgate.errors import InputError, unknown
from headgate.model.table import Table, TableColumn
from headgate.report.render import render

__all__ = ["bench"]


def bench(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A benchmark; all are listed if left out.")
    ] = None,
    as_json: JsonAtEnd = False,
    seed: Annotated[int, typer.Option(help="Seed of the generated data.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the JSON, with every sample, to this file too.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="PART,...", help="Run only these parts, where a benchmark has several."),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Draw what was measured into this folder, where there is a picture.")
    ] = None,
    smoke: Annotated[
        bool,
        typer.Option("--smoke", help="Run the short form: seconds, to its end, with all figures. Without NAME, all."),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run a form between the two, where there is one.")] = False,
) -> None:
    """Run a benchmark: a table for people, and figures for programs with --json.

    Example: [bold]headgate bench model --json[/bold]
    """
    benchmarks = _benchmarks()
    if name is None:
        _all(benchmarks, smoke, seed, as_json)
        return
    if name not in benchmarks.BENCHMARKS:
        raise unknown("UNKNOWN_BENCHMARK", f"unknown benchmark {name[:60]!r}", name, benchmarks.BENCHMARKS)
    benchmark = benchmarks.BENCHMARKS[name]
    if plots is not None and benchmark.plot is None:
        raise InputError("NO_PLOTS", f"benchmark '{name}' has no pictures; leave --plots out")
    parts = [] if only is None else [part.strip() for part in only.split(",")]
    for part in parts:
        if part not in benchmark.parts:
            raise unknown("UNKNOWN_PART", f"benchmark '{name}' has no part {part[:60]!r}", part, benchmark.parts)
    if quick and (smoke or benchmark.quick is None):
        why = "give --smoke or --quick" if smoke else f"benchmark '{name}' has no quick form; leave --quick out"
        raise InputError("NO_QUICK_FORM", why)
    measured = benchmark.run(seed, step_to_stderr, only=parts, smoke=smoke, quick=quick)
    result = benchmarks.report(benchmark, measured, seed, smoke=smoke)
    if out is not None:
        write_file(out, json.dumps(result, indent=2) + "\n", force=True)
        sentence_to_stderr(f"figures written to {out}")
    if plots is not None and benchmark.plot is not None:
        for path in benchmark.plot(measured, plots):
            sentence_to_stderr(f"picture written to {path}")
    if as_json:
        print_json({key: value for key, value in result.items() if key != "samples"})
        return
    typer.echo(render(measured.tables or (_listed(result["figures"]),), "text"), nl=False)
    for about, note in measured.notes.items():
        typer.echo(f"{about}: {note}")


def _benchmarks() -> ModuleType:
    """The package of benchmarks, which a checkout has and the wheel does not."""
    for entry in entry_points(group="headgate.benchmarks"):
        return import_module(entry.module)
    raise InputError("NO_BENCHMARKS", "the benchmarks are not installed; run this in a clone, after make setup")


def _listed(figures: Mapping[str, Any]) -> Table:
    rows = tuple({"figure": key, "value": value} for key, value in figures.items())
    return Table("", (TableColumn("figure", "figure"), TableColumn("value", "value", form=",.3f")), rows)


def _all(benchmarks: ModuleType, smoke: bool, seed: int, as_json: bool) -> None:
    """List all benchmarks, or run the short form of each."""
    if not smoke:
        for benchmark in benchmarks.BENCHMARKS.values():
            typer.echo(f"{benchmark.name:<10} {benchmark.summary}")
        return
    table = benchmarks.smoke_all(benchmarks.BENCHMARKS.values(), seed, step_to_stderr)
    typer.echo(render((table,), "json" if as_json else "text"), nl=False)
    if any(row["error"] for row in table.rows):
        raise typer.Exit(1)
