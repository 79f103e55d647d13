"""``headgate experiment``: a grid of simulations, as a Spark job."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import known_types, print_json, write_file
from headgate.errors import InputError, missing_package, os_reason

if TYPE_CHECKING:
    from headgate.service.experiment import Experiment

__all__ = ["experiment"]


def experiment(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The grid as .yaml or .json.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the results; the name of the experiment if left out.")
    ] = None,
    master: Annotated[str, typer.Option(help="Spark's master.")] = "local[*]",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")] = False,
) -> None:
    """Simulate every cell of a grid in parallel, and compare policies; run again, it goes on where it was.

    The folder gets results/ (parquet, a row for each cell with every interval) and report.html.

    Example: [bold]headgate experiment grid.yaml --out results[/bold]
    """
    try:
        from headgate.runtime.batch.experiment_job import read_results, run_waves
        from headgate.runtime.spark_internals.session import open_session
        from headgate.service.experiment import COLUMNS, load_experiment, run_cell
    except ModuleNotFoundError as error:
        raise missing_package("NO_SPARK", "running an experiment", error, "simulation,spark") from None
    grid = load_experiment(file, known_types())
    folder = out or Path(grid.name)
    results = folder / "results"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("CANNOT_WRITE", f"cannot write {folder}: {os_reason(error)}") from None
    spark = open_session(master, log=folder / "spark.log")
    began = time.monotonic()
    first: list[int] = []

    def progress(done: int, of: int) -> None:
        first.append(done)
        left = (time.monotonic() - began) / max(done - first[0], 1) * (of - done)
        eta = f", about {left:.0f} s left" if done > first[0] and done < of else ""
        typer.echo(f"  {done:,} of {of:,} cells{eta}", err=True)

    run_waves(spark, [(cell.key, cell.as_text()) for cell in grid.cells], run_cell, COLUMNS, results, progress)
    order = {cell.key: place for place, cell in enumerate(grid.cells)}
    rows = sorted(read_results(spark, results, order), key=lambda row: order[row["key"]])
    _tell(grid, rows, folder, as_json)


def _tell(grid: Experiment, rows: list[dict[str, Any]], folder: Path, as_json: bool) -> None:
    from headgate.report.experiments import draw_experiment, experiment_page
    from headgate.service.experiment import grouped

    groups = grouped(rows)
    try:
        picture = draw_experiment(groups, ".svg")
    except ModuleNotFoundError:
        picture = b""
    write_file(folder / "report.html", experiment_page(grid.name, groups, picture), force=True)
    if as_json:
        print_json({"experiment": grid.name, "cells": len(rows), "out": str(folder), "groups": groups})
        return
    names = ("dataflow", "rates", "variability", "policy")
    widths = {name: max(len(name), *(len(str(row[name])) for row in groups)) for name in names}
    head = "  ".join(f"{name:<{widths[name]}}" for name in names)
    typer.echo(f"{head}  {'Ω':>14}  {'in time':>8}  {'Γ':>6}  {'cost':>16}  {'Θ':>8}")
    for row in groups:
        left = "  ".join(f"{row[name]:<{widths[name]}}" for name in names)
        theta = "-" if row["theta"] is None else f"{row['theta']:.3f}"
        omega = f"{row['omega']:.3f} ± {row['omega_error']:.3f}"
        cost = f"{row['cost']:.2f} ± {row['cost_error']:.2f}"
        typer.echo(f"{left}  {omega:>14}  {row['within']:>8.1%}  {row['gamma']:>6.3f}  {cost:>16}  {theta:>8}")
    typer.echo(f"{len(rows)} cells; {folder / 'report.html'} and {folder / 'results'}")
