"""``headgate experiment``: a grid of simulations, as a Spark job."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import AsCsv, AsJson, known_types, packages, print_tables, sentence_to_stderr, write_file

__all__ = ["experiment"]


def experiment(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The grid as .yaml or .json.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the results; the name of the experiment if left out.")
    ] = None,
    master: Annotated[str, typer.Option(help="Spark's master.")] = "local[*]",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Simulate every cell of a grid in parallel, and compare policies; run it again to resume.

    The folder gets results/ (parquet, a row for each cell with every interval) and report.html.

    Example: [bold]headgate experiment grid.yaml --out results[/bold]
    """
    with packages("an experiment", "simulation,spark"):
        from headgate.service.experiment import (
            experiment_page,
            experiment_table,
            grouped,
            load_experiment,
            run_experiment,
        )

        grid = load_experiment(file, known_types())
        folder = out or Path(grid.name)
        rows = run_experiment(grid, master, folder, _progress())
    groups = grouped(rows)
    write_file(folder / "report.html", experiment_page(grid.name, groups), force=True)
    print_tables([experiment_table(groups)], as_json, as_csv)
    sentence_to_stderr(f"{len(rows)} cells; see {folder / 'report.html'} and {folder / 'results'}")


def _progress() -> Callable[[int, int], None]:
    began = time.monotonic()
    first: list[int] = []

    def show(done: int, of: int) -> None:
        first.append(done)
        left = (time.monotonic() - began) / max(done - first[0], 1) * (of - done)
        eta = f", about {left:.0f} s left" if done > first[0] and done < of else ""
        typer.echo(f"  {done:,} of {of:,} cells{eta}", err=True)

    return show
