"""``headgate queue``: how many processors, and where."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import print_json, write_file
from headgate.cli.span import seconds
from headgate.errors import InputError, missing_package, printable

if TYPE_CHECKING:
    from headgate.service.size import Asked, Sized

__all__ = ["queue"]

MODELS = {"mmk": "M/M/k", "ggk": "GI/G/k", "ggk-refined": "GI/G/k, refined", "micro-batch": "micro-batches"}


def queue(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Operators and rates as .yaml or .json.")],
    processors: Annotated[
        int | None, typer.Option("--processors", "-k", min=1, help="Split so many for the least latency.")
    ] = None,
    latency: Annotated[
        str | None, typer.Option(help="Find the fewest processors for this latency, such as 500ms.")
    ] = None,
    percentile: Annotated[
        float | None, typer.Option(help="Ask for this share of the tuples, such as 0.95, not for the mean.")
    ] = None,
    model: Annotated[str | None, typer.Option(help=f"One of {', '.join(MODELS)}.")] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", metavar="NAME=K|rate=FACTORx", help="Also tell of another allocation or rate."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw latency against processors into this .svg or .png file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Size operators from their rates: the fewest processors for a latency, or the best split of some.

    Options come before what the file says.

    Example: [bold]headgate queue logos.yaml --processors 22 --what-if extract=12[/bold]
    """
    try:
        if plot is not None:
            import matplotlib  # noqa: F401 (better missed now than when the picture is drawn)

        from headgate.service.size import latency_picture, load_asked, size
        from headgate.service.size import what_if as changed
    except ModuleNotFoundError as error:
        raise missing_package("NO_QUEUEING", "sizing", error, "queueing") from None

    asked = load_asked(file)
    if processors is not None or latency is not None:
        asked_s = None if latency is None else seconds("--latency", latency)
        asked = replace(asked, processors=processors, latency_max_s=asked_s)
    if model is not None:
        if model not in MODELS:
            raise InputError("UNKNOWN_MODEL", f"unknown model {model[:60]!r}; there is {', '.join(MODELS)}")
        asked = replace(asked, model=model)
    if percentile is not None:
        if not 0.75 <= percentile < 1:
            told = f"--percentile {percentile:g} is not a share from 0.75 to below 1, such as 0.95"
            raise InputError("BAD_PERCENTILE", told)
        asked = replace(asked, percentile=percentile)
    sized = size(asked)
    now = None
    if all(k is not None for k in asked.now):
        now = changed(asked, [k for k in asked.now if k is not None], {})
    counts, factor = _changes(what_if or [])
    other = changed(asked, sized.allocation, counts, factor) if what_if else None
    if plot is not None:
        write_file(plot, latency_picture(asked, sized, plot.suffix.lower()), force)
    answers = {"now": now, "sized": sized, "what_if": other}
    if as_json:
        found = {key: _facts(answer) for key, answer in answers.items() if answer is not None}
        print_json({"name": asked.name, "model": asked.model, "percentile": asked.percentile, **found})
        return
    outside = f"{asked.network.external_rate_per_s:g} tuples/s from outside"
    typer.echo(printable(f"{asked.name}: {len(sized.rows)} operators, {outside}, {MODELS[asked.model]}"))
    titles = {"now": "as it is", "sized": _title(asked), "what_if": f"what if {' '.join(what_if or [])}"}
    for key, answer in answers.items():
        if answer is not None:
            typer.echo(f"\n{printable(titles[key])}\n{_table(answer)}", nl=False)


def _title(asked: Asked) -> str:
    what = "mean latency" if asked.percentile is None else f"p{100 * asked.percentile:g} latency"
    if asked.processors is not None:
        return f"least {what} of {asked.processors} processors"
    prices = {operator.price for operator in asked.network.operators}
    return f"{'fewest' if len(prices) == 1 else 'cheapest'} processors for a {what} of {asked.latency_max_s:g} s"


def _changes(given: list[str]) -> tuple[dict[str, int], float]:
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
            told = f"--what-if {text[:60]!r} is neither NAME=PROCESSORS, such as match=12, nor rate=FACTORx"
            told += ", such as rate=2x"
            raise InputError("BAD_WHAT_IF", told)
    return counts, factor


def _table(sized: Sized) -> str:
    width = max(8, *(len(row.name) for row in sized.rows))
    lines = [f"  {'operator':<{width}} {'processors':>10} {'tuples/s':>10} {'busy':>6} {'sojourn s':>10}"]
    for row in sized.rows:
        numbers = f"{row.processors:>10} {row.arrival_rate_per_s:>10.4g} {row.utilisation:>6.0%} {row.sojourn_s:>10.4g}"
        lines.append(f"  {row.name:<{width}} {numbers}")
    told = f"  {sized.processors} processors"
    if sized.cost != sized.processors:
        told += f" at a price of {sized.cost:g}"
    if sized.trigger_s is not None:
        told += f", a batch every {sized.trigger_s:.4g} s"
    if math.isinf(sized.mean_s):
        told += ": cannot keep up"
    else:
        told += f": mean {sized.mean_s:.4g} s, p95 {sized.p95_s:.4g} s, p99 {sized.p99_s:.4g} s"
    if not sized.exact:
        told += " (good, but not proved to be the best)"
    return printable("\n".join([*lines, told]).replace("\n", "\0")).replace("\\x00", "\n") + "\n"


def _facts(sized: Sized) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "processors": sized.processors,
        "cost": sized.cost,
        "mean_s": _number(sized.mean_s),
        "p95_s": _number(sized.p95_s),
        "p99_s": _number(sized.p99_s),
        "exact": sized.exact,
        "operators": [
            {
                "name": row.name,
                "processors": row.processors,
                "arrival_rate_per_s": _number(row.arrival_rate_per_s),
                "utilisation": _number(row.utilisation),
                "sojourn_s": _number(row.sojourn_s),
            }
            for row in sized.rows
        ],
    }
    if sized.trigger_s is not None:
        facts["trigger_s"] = _number(sized.trigger_s)
    return facts


def _number(value: float) -> float | None:
    """A number for JSON, which has no infinity: null where an operator cannot keep up."""
    return round(value, 9) if math.isfinite(value) else None
