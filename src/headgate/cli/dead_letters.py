"""``headgate dead-letters``: the rows for which tasks raised, with the errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import print_json, write_file
from headgate.errors import InputError, missing_package, nearest, printable, shorten

if TYPE_CHECKING:
    from headgate.runtime.isolation.dead_letters import DeadLetter

__all__ = ["dead_letters"]

SHOWN = 20


def dead_letters(
    dataflow: Annotated[
        str | None, typer.Argument(metavar="[DATAFLOW]", help="Only those of tasks that this dataflow uses.")
    ] = None,
    state: Annotated[Path, typer.Option("--state", metavar="DIR", help="The engine's state directory.")] = Path(
        ".headgate"
    ),
    task: Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only those of this task.")] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write all of them to a file, as JSON lines.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of them as one JSON object.")] = False,
) -> None:
    """Show the rows that tasks with [bold]on_error: dead_letter[/bold] could not stand, and why.

    It reads the state directory, whether or not an engine is using it. Without options the newest are shown.

    Example: [bold]headgate dead-letters alarms --export letters.jsonl[/bold]
    """
    letters = _found(state, dataflow, task)
    if export is not None:
        write_file(export, "".join(json.dumps(_as_dict(letter)) + "\n" for letter in letters), force)
        typer.echo(f"{len(letters):,} dead letters in {export}")
    elif as_json:
        print_json({"dead_letters": [_as_dict(letter) for letter in letters]})
    else:
        _show(letters)


def _found(state: Path, dataflow: str | None, task: str | None) -> list[DeadLetter]:
    if not (state / "version").is_file():
        told = f"{state} is no state directory of Headgate; name the one of your engine with --state"
        raise InputError("STATE_UNUSABLE", told)
    try:
        from headgate.runtime.isolation.dead_letters import read_letters
    except ModuleNotFoundError as error:
        raise missing_package("NO_SPARK", "reading dead letters", error, "spark") from None
    letters = list(read_letters(state))
    if dataflow is not None:
        _check("dataflow", dataflow, {name for letter in letters for name in letter.dataflows})
        letters = [letter for letter in letters if dataflow in letter.dataflows]
    if task is not None:
        _check("task", task, {name for letter in letters for name in (letter.task, letter.task.partition(".")[2])})
        letters = [letter for letter in letters if task in (letter.task, letter.task.partition(".")[2])]
    return letters


def _check(what: str, name: str, known: Iterable[str]) -> None:
    """Say so if a name is close to one that has dead letters; a name without any is no mistake."""
    found = set(known)
    near = nearest(name, sorted(found))
    if name not in found and near is not None:
        told = f"no {what} {shorten(name)} has dead letters; did you mean '{near}'?"
        raise InputError("UNKNOWN_DATAFLOW" if what == "dataflow" else "UNKNOWN_TASK", told)


def _as_dict(letter: DeadLetter) -> dict[str, Any]:
    return {**asdict(letter), "dataflows": list(letter.dataflows), "record": json.loads(letter.record)}


def _show(letters: Sequence[DeadLetter]) -> None:
    if not letters:
        typer.echo("no dead letters")
        return
    newest = sorted(letters, key=lambda letter: letter.at)[-SHOWN:]
    for letter in newest:
        typer.echo(printable(f"{letter.at}  {letter.task}, epoch {letter.epoch}: {letter.error}"))
        typer.echo(printable(f"    {letter.record[:300]}"))
    if len(newest) < len(letters):
        typer.echo(f"the newest {len(newest)} of {len(letters):,}; --export writes all of them to a file")
