"""The rows for which tasks raised, from a state directory, whether or not an engine uses it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headgate.errors import InputError, missing_package, nearest, shorten
from headgate.model.table import Table, TableColumn

__all__ = ["dead_letters", "dead_letters_table"]

COLUMNS = (
    TableColumn("at", "at"),
    TableColumn("task", "task"),
    TableColumn("epoch", "epoch"),
    TableColumn("error", "error"),
    TableColumn("record", "record"),
)


def dead_letters(state: Path, dataflow: str | None = None, task: str | None = None) -> list[dict[str, Any]]:
    """The dead letters of a dataflow or task, oldest first; of all if neither is given."""
    if not (state / "version").is_file():
        message = f"{state} is not a state directory of Headgate; name the one of your engine with --state"
        raise InputError("STATE_UNUSABLE", message)
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
    ordered = sorted(letters, key=lambda letter: letter.at)
    return [{**asdict(x), "dataflows": list(x.dataflows), "record": json.loads(x.record)} for x in ordered]


def dead_letters_table(letters: list[dict[str, Any]], most: int) -> Table:
    """The newest dead letters."""
    newest = letters[-most:]
    rows = tuple({**letter, "record": json.dumps(letter["record"], ensure_ascii=False)} for letter in newest)
    left_out = len(letters) - len(newest)
    notes = (f"The newest {len(newest)} of {len(letters):,}; write all of them to a file with --export.",)
    return Table("Dead letters", COLUMNS, rows, notes if left_out else ())


def _check(what: str, name: str, known: Iterable[str]) -> None:
    """Raise if a name is close to one that has dead letters; a name without any is no mistake."""
    names = set(known)
    near = nearest(name, sorted(names))
    if name not in names and near is not None:
        message = f"no {what} {shorten(name)} has dead letters; did you mean '{near}'?"
        raise InputError("UNKNOWN_DATAFLOW" if what == "dataflow" else "UNKNOWN_TASK", message)
