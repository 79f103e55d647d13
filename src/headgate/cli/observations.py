"""``headgate observations``: what a running or stopped engine has measured, as a table or as parquet files."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter

from headgate.cli.output import print_json
from headgate.cli.span import seconds
from headgate.errors import InputError
from headgate.model.cluster.observation import Observation
from headgate.store.observations import history_of

__all__ = ["observations"]


def observations(
    state: Annotated[Path, typer.Option("--state", metavar="DIR", help="The state directory of the engine.")] = Path(
        ".headgate"
    ),
    last: Annotated[
        str | None, typer.Option("--last", metavar="SPAN", help="Only those of the last 10min, 2h and so on.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Write parquet tables into this directory.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per observation.")] = False,
) -> None:
    """List what was measured, interval by interval, or export it.

    The tables are tasks, sinks, fragments and workers; each row has the interval's end (seconds since 1970) and length.

    Example: [bold]headgate observations --last 1h --export measured/[/bold]
    """
    since = 0.0 if last is None else time.time() - seconds("--last", last)
    found = history_of(state).read(since)
    if export is not None:
        _export(found, export)
    elif as_json:
        form = TypeAdapter(Observation)
        for seen in found:
            print_json(form.dump_python(seen, mode="json"))
    else:
        _list(found)


def _export(found: Iterable[Observation], folder: Path) -> None:
    from headgate.runtime.observing.export import export_observations

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("FILE_EXISTS", f"{folder} is there already and not empty; give another directory")
    written = export_observations(found, folder)
    typer.echo(", ".join(f"{rows:,} {name}" for name, rows in written.items()) + f" in {folder}")


def _list(found: Iterable[Observation]) -> None:
    typer.echo(f"{'ended':<20}{'seconds':>8}{'rows/s in':>12}{'rows/s out':>12}{'behind':>10}{'p95 s':>9}")
    for seen in found:
        ended = datetime.fromtimestamp(seen.ended, UTC).strftime("%Y-%m-%d %H:%M:%S")
        sources = {fragment.id for fragment in seen.fragments if fragment.kind == "source"}
        rows_in = sum(fragment.rows_in for fragment in seen.fragments if fragment.id in sources) / seen.seconds
        rows_out = sum(sink.rows for sink in seen.sinks) / seen.seconds
        behind = sum(fragment.rows_behind for fragment in seen.fragments)
        worst = max((sink.sojourn.p95_s for sink in seen.sinks if sink.sojourn is not None), default=None)
        told = "-" if worst is None else f"{worst:.2f}"
        typer.echo(f"{ended:<20}{seen.seconds:>8.1f}{rows_in:>12,.0f}{rows_out:>12,.0f}{behind:>10,}{told:>9}")
