"""What a source could not read in a batch: workers write it, the driver makes dead letters of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from headgate.tasks.row_errors import LETTER_TYPE

__all__ = ["LONGEST", "broken_records", "forget_broken", "write_broken"]

LONGEST = 10_000
"""Characters of a broken record that are kept."""


def write_broken(folder: Path, batch: int, part: int, broken: Sequence[Mapping[str, str]]) -> None:
    """Put the broken records of a part where the driver looks; whoever reads the part again writes the same."""
    place = _place(folder, batch)
    place.mkdir(parents=True, exist_ok=True)
    hidden = place / f".{part}-{os.getpid()}"
    table = pa.Table.from_pylist(list(broken), schema=pa.schema(LETTER_TYPE))
    with pa.OSFile(str(hidden), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    hidden.rename(place / f"{part:06d}.arrow")


def broken_records(folder: Path, batch: int) -> list[tuple[str, int]]:
    """The files with the broken records of a batch, and how many each has."""
    files = []
    for path in sorted(_place(folder, batch).glob("*.arrow")):
        with pa.OSFile(str(path)) as file:
            files.append((str(path), pa.ipc.open_file(file).read_all().num_rows))
    return files


def forget_broken(folder: Path, batch: int) -> None:
    """Remove what was kept of a batch and of those before it."""
    for place in (folder / "broken").glob("*"):
        if int(place.name) <= batch:
            shutil.rmtree(place, ignore_errors=True)


def _place(folder: Path, batch: int) -> Path:
    return folder / "broken" / str(batch)
