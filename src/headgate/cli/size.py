"""``headgate size``: how many processors each operator needs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.output import AsCsv, AsJson, Force, packages, print_tables, seconds, write_file
from headgate.errors import InputError

if TYPE_CHECKING:
    from headgate.service.size import SizingRequest

__all__ = ["size"]


def size(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Operators and rates as .yaml or .json.")],
    processors: Annotated[
        int | None, typer.Option("--processors", "-k", min=1, help="Split this many for the least latency.")
    ] = None,
    latency: Annotated[
        str | None, typer.Option(help="Find the fewest processors for this latency, such as 500ms.")
    ] = None,
    percentile: Annotated[
        float | None, typer.Option(help="Limit this percentile of latency, such as 0.95, instead of the mean.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="One of mmk, ggk, ggk-refined, micro-batch.")] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", metavar="NAME=K|rate=FACTORx", help="Compare with another allocation or rate."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw latency against processors into this .svg, .png or .pdf file.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Size operators from their rates: the fewest processors for a latency, or the best split of a number of them.

    Options override the file.

    Examples: [bold]headgate size logos.yaml --processors 22 --what-if extract=12[/bold],
    [bold]headgate size logos.yaml --latency 2s --plot latency.svg[/bold]
    """
    with packages("sizing", "queueing"):
        from headgate.report.figures import check_picture
        from headgate.service.size import latency_picture, load_request, sizing_tables
        from headgate.service.size import size as size_operators
        from headgate.service.size import what_if as changed
    if plot is not None:
        check_picture(plot.suffix)
    request = _with_options(load_request(file), processors, latency, percentile, model)
    sized = size_operators(request)
    answers = {"sized": sized}
    if all(k is not None for k in request.now):
        answers = {"now": changed(request, [k for k in request.now if k is not None], {}), **answers}
    if what_if:
        counts, factor = _changes(what_if)
        answers["what if"] = changed(request, sized.allocation, counts, factor)
    if plot is not None:
        write_file(plot, latency_picture(request, sized, plot.suffix), force)
    print_tables(sizing_tables(request, answers, " ".join(what_if or [])), as_json, as_csv)


def _with_options(
    request: SizingRequest, processors: int | None, latency: str | None, percentile: float | None, model: str | None
) -> SizingRequest:
    from headgate.service.size import MODELS

    if processors is not None or latency is not None:
        limit_s = None if latency is None else seconds("--latency", latency)
        request = replace(request, processors=processors, latency_max_s=limit_s)
    if model is not None:
        if model not in MODELS:
            raise InputError("UNKNOWN_MODEL", f"unknown model {model[:60]!r}; expected one of {', '.join(MODELS)}")
        request = replace(request, model=model)
    if percentile is not None:
        if not 0.75 <= percentile < 1:
            message = f"--percentile {percentile:g} is not a share from 0.75 to below 1, such as 0.95"
            raise InputError("BAD_PERCENTILE", message)
        request = replace(request, percentile=percentile)
    return request


def _changes(given: list[str]) -> tuple[dict[str, int], float]:
    """Processors by operator and the factor of the rate, from what was written."""
    counts: dict[str, int] = {}
    factor = 1.0
    for text in given:
        rate = re.fullmatch(r"rate=(\d+(?:\.\d+)?)x", text[:80])
        count = re.fullmatch(r"([^=]+)=(\d{1,9})", text[:300])
        if rate and float(rate[1]) > 0:
            factor = float(rate[1])
        elif count and int(count[2]) > 0:
            counts[count[1]] = int(count[2])
        else:
            message = f"--what-if {text[:60]!r} is neither NAME=PROCESSORS, such as match=12, nor rate=FACTORx"
            raise InputError("BAD_WHAT_IF", f"{message}, such as rate=2x")
    return counts, factor
