"""``headgate traces``: what recorded performance of machines says."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.output import print_json, sentence_to_stderr, write_file
from headgate.cli.span import seconds
from headgate.errors import InputError, missing_package, printable

if TYPE_CHECKING:
    from headgate.model.trace_statistics import MetricStatistics

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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Compute how performance is spread, how it changes and how machines differ, as a Spark job.

    Tables have columns vm, t_s and metrics, or t_s and a column for each machine.

    Example: [bold]headgate traces analyse traces/ --unit time --plots pictures[/bold]
    """
    try:
        if plots is not None:
            import matplotlib  # noqa: F401 (better missed now than when the picture is drawn)

        from headgate.model.trace_statistics import TraceUnit
        from headgate.runtime.batch.trace_analysis import analyse as analysed
        from headgate.runtime.spark_internals.session import open_session
        from headgate.simulation.traces import trace_files
    except ModuleNotFoundError as error:
        raise missing_package("NO_SPARK", "analysing traces", error, "simulation,spark") from None
    if unit not in list(TraceUnit):
        raise InputError("UNKNOWN_UNIT", f"unknown unit {unit[:60]!r}; there is {', '.join(TraceUnit)}")
    slot_s = seconds("--slot", slot)
    files = trace_files(path)
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        spark = open_session(master, log=Path(folder) / "spark.log")
        found = analysed(
            spark, files, TraceUnit(unit), metric or (), slot_s, lambda step: typer.echo(f"  {step}", err=True)
        )
    if plots is not None:
        _draw(found, plots)
    if as_json:
        print_json({"slot_s": slot_s, "unit": unit, "metrics": [each.as_dict() for each in found]})
        return
    typer.echo(_table(found, slot), nl=False)


def _draw(found: Sequence[MetricStatistics], folder: Path) -> None:
    from headgate.report.traces import draw_changes, draw_performance

    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in (("figure1.svg", draw_performance), ("figure2.svg", draw_changes)):
        write_file(folder / name, picture(found, ".svg"), force=True)
        sentence_to_stderr(f"picture written to {folder / name}")


def _table(found: Sequence[MetricStatistics], slot: str) -> str:
    width = max(6, *(len(each.metric) for each in found))
    lines = [f"{'metric':<{width}} {'machines':>8} {'rows':>12} {'median':>7} {'< 0.8':>7} {'jumps > 20 %':>13}"]
    for each in found:
        jumps = f"{each.change_above_02:.1%}" if each.changes else "-"
        middle = each.performance[50]
        numbers = f"{each.machines:>8,} {each.measurements:>12,} {middle:>7.3f} {each.below_08:>7.1%} {jumps:>13}"
        lines.append(printable(f"{each.metric:<{width}} {numbers}"))
    if any(not each.changes for each in found):
        lines.append(f"no two slots of {slot} lie side by side: measurements are farther apart; try a longer --slot")
    return "\n".join(lines) + "\n"
