"""``headgate diff``: what two dataflows have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import known_types, notices_to_stderr, print_json
from headgate.errors import printable
from headgate.service.load import load
from headgate.sharing.overlap import Overlap, overlap

__all__ = ["diff"]


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="A dataflow, say one that is running.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another, say one to be submitted.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Show which tasks of two dataflows are equivalent, and which only one of them has.

    Example: [bold]headgate diff running.yaml submitted.yaml[/bold]
    """
    registry = known_types()
    one, two = load(first, registry), load(second, registry)
    notices_to_stderr((*one.notices, *two.notices))
    found = overlap(one.dataflow, two.dataflow)
    if as_json:
        print_json(
            {
                "equivalent": [{"a": a, "b": b} for a, b in found.equivalent],
                "only_a": list(found.only_first),
                "only_b": list(found.only_second),
                "shared": round(found.shared, 6),
            }
        )
    else:
        typer.echo(_told(found, str(first), str(second)), nl=False)


def _told(found: Overlap, first: str, second: str) -> str:
    lines = [f"  = {b}" + (f"  (is {a})" if a != b else "") for a, b in found.equivalent]
    lines += [f"  + {task}" for task in found.only_second]
    lines += [f"  - {task}" for task in found.only_first]
    share = f"{found.shared:.0%} of {second} runs already when {first} does"
    counts = f"{len(found.equivalent)} equivalent (=), {len(found.only_second)} new (+)"
    counts += f", {len(found.only_first)} only in {first} (-)"
    return "\n".join([*lines, printable(f"{counts}; {share}")]) + "\n"
