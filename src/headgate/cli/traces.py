"""``headgate traces``: how the recorded performance of machines varies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import (
    AsCsv,
    AsJson,
    packages,
    print_tables,
    seconds,
    sentence_to_stderr,
    step_to_stderr,
    write_file,
)

__all__ = ["traces"]

traces = typer.Typer(name="traces", help="Look at recorded performance of machines.", no_args_is_help=True)


@traces.callback()
def _traces() -> None:
    """Look at recorded performance of machines."""


@traces.command()
def analyse(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of traces as CSV or parquet, or one file.")],
    unit: Annotated[
        str, typer.Option(help="What the numbers are: rate, time, share, percent or used-percent.")
    ] = "rate",
    metric: Annotated[list[str] | None, typer.Option(help="Only these metrics; all if left out.")] = None,
    slot: Annotated[str, typer.Option(help="Changes are between means over slots of this length.")] = "5min",
    plots: Annotated[Path | None, typer.Option(help="Draw figure1.svg and figure2.svg into this folder.")] = None,
    master: Annotated[str, typer.Option(help="Spark's master.")] = "local[*]",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Compute how performance is spread, how it changes and how machines differ, as a Spark job.

    Tables have columns vm, t_s and metrics, or t_s and a column for each machine.

    Example: [bold]headgate traces analyse traces/ --unit time --plots pictures[/bold]
    """
    with packages("analysing traces", "simulation,spark"):
        from headgate.report.figures import check_picture
        from headgate.report.traces import draw_changes, draw_performance
        from headgate.service.traces import analyse_traces, trace_table

        if plots is not None:
            check_picture()
        slot_s = seconds("--slot", slot)
        metrics = analyse_traces(path, unit, metric or (), slot_s, master, step_to_stderr)
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        for name, picture in (("figure1.svg", draw_performance), ("figure2.svg", draw_changes)):
            write_file(plots / name, picture(metrics, ".svg"), force=True)
            sentence_to_stderr(f"picture written to {plots / name}")
    print_tables([trace_table(metrics, slot)], as_json, as_csv)
