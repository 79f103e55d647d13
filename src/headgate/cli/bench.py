"""``headgate bench``: the benchmark behind each claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import print_json, sentence_to_stderr, write_file
from headgate.errors import InputError, unknown

__all__ = ["bench"]


def bench(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A benchmark; all are listed if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the generated data.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the JSON, with every sample, to this file too.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", metavar="PART", help="Run only this part, where a benchmark has several.")
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Draw what was measured into this folder, where there is a picture.")
    ] = None,
) -> None:
    """Run a benchmark: a table for people, and figures for programs with --json.

    Example: [bold]headgate bench model --json[/bold]
    """
    from headgate_benchmarks import BENCHMARKS, report

    if name is None:
        for benchmark in BENCHMARKS.values():
            typer.echo(f"{benchmark.name:<10} {benchmark.summary}")
        return
    if name not in BENCHMARKS:
        raise unknown("UNKNOWN_BENCHMARK", f"unknown benchmark {name[:60]!r}", name, BENCHMARKS)
    benchmark = BENCHMARKS[name]
    if plots is not None and benchmark.plot is None:
        raise InputError("NO_PLOTS", f"benchmark '{name}' has no pictures; leave --plots out")
    if only is not None and only not in benchmark.parts:
        there = f"there is {', '.join(benchmark.parts)}" if benchmark.parts else "it has none; leave --only out"
        raise InputError("UNKNOWN_PART", f"benchmark '{name}' has no part {only[:60]!r}; {there}")
    work = benchmark.run if only is None else benchmark.parts[only]
    measured = work(seed, lambda step: typer.echo(f"  {step}", err=True))
    result = report(benchmark, measured, seed)
    if out is not None:
        write_file(out, json.dumps(result, indent=2) + "\n", force=True)
        sentence_to_stderr(f"figures written to {out}")
    if plots is not None and benchmark.plot is not None:
        for path in benchmark.plot(measured, plots):
            sentence_to_stderr(f"picture written to {path}")
    if as_json:
        print_json({key: value for key, value in result.items() if key != "samples"})
    elif measured.table:
        typer.echo(measured.table, nl=False)
    else:
        for key, value in result["figures"].items():
            typer.echo(f"{key:<28} {value:>14,.3f}" if isinstance(value, float) else f"{key:<28} {value:>14}")
    if not as_json:
        for about, told in measured.notes.items():
            typer.echo(f"{about}: {told}")
