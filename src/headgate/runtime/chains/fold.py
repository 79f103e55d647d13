"""One epoch of one range of a chain: rows in, new files of state and rows out. No Spark; it runs in a worker.

What it writes counts only once a commit names it. So a range may be folded again, or twice at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.model.chain_work import HASH, Chain, ChainWork, Moment
from headgate.runtime.chains.files import PartReader, written
from headgate.store.chain_entries import ChainKept, ChainPart, StateFile
from headgate.tasks.chains.hashing import hash_keys
from headgate.tasks.row_errors import error_text

__all__ = ["FoldedPart", "Folding", "fold_part", "watermark"]

Sides = Sequence[pa.Table]


@dataclass(frozen=True, slots=True)
class Folding:
    """What is folded in an epoch, apart from the rows."""

    chain: Chain
    work: ChainWork
    options: Any
    kept: ChainKept
    """The state before the epoch."""

    epoch: int
    clock: int

    def moment(self, sides: Sides) -> tuple[Moment, tuple[int | None, ...]]:
        """When the epoch is folded, by all of its rows; and the greatest event times after it."""
        times, late_by = self.work.times(self.options), self.work.late_by(self.options)
        before = self.kept.seen or (None,) * len(sides)
        seen = tuple(_later(at, _greatest(rows, time)) for at, rows, time in zip(before, sides, times, strict=True))
        edges = watermark(before, times, late_by), watermark(seen, times, late_by)
        return Moment(self.epoch, *edges, self.clock), seen


@dataclass(frozen=True, slots=True)
class FoldedPart:
    """What an epoch has made of a range."""

    seen: tuple[int | None, ...] = ()
    files: Mapping[str, StateFile] = field(default_factory=dict)
    dead: Mapping[str, int] = field(default_factory=dict)
    output: str = ""
    """The file of rows that it puts out, if there are any."""

    rows: int = 0
    late: int = 0
    read: int = 0
    keys: int = 0
    error: str = ""
    """What the fold raised, if it did: then there is nothing else."""


def watermark(seen: Sequence[int | None], times: Sequence[str | None], late_by: int) -> int | None:
    """The least of the greatest event times of the sides that have one, less what is waited for late rows.

    >>> (
    ...     watermark((70, 50), ("t", "t"), 10),
    ...     watermark((70, None), ("t", "t"), 10),
    ...     watermark((70, None), ("t", None), 0),
    ... )
    (40, None, 70)
    """
    known = [at for at, time in zip(seen, times, strict=True) if time is not None]
    return min(at for at in known if at is not None) - late_by if known and None not in known else None


def fold_part(folding: Folding, sides: Sides, part: ChainPart, folder: Path, outputs: Path, prefix: str) -> FoldedPart:
    """Fold the rows of a range; ``sides`` are all rows of the epoch, in order of arrival."""
    reader = PartReader(folder, folding.chain.tables, part, folding.kept.dead)
    try:
        moment, seen = folding.moment(sides)
        keys = folding.work.keys(folding.options)
        own = [_own(rows, names, part) for rows, names in zip(sides, keys, strict=True)]
        folded = folding.chain.fold(moment, own, reader)
        made = folded.output.cast(folding.chain.output)
    except OSError:  # of a disk, and no fault of the task's
        raise
    except Exception as error:
        return FoldedPart(error=error_text(error))
    files = {table: written(folder, prefix, rows) for table, rows in folded.appended.items() if len(rows)}
    output = _output(made, outputs, prefix)
    late = sum(len(places) for places in folded.late)
    dead = {str(axis): mark for axis, mark in folded.dead.items()}
    return FoldedPart(seen, files, dead, output, len(folded.output), late, sum(map(len, own)), folded.keys)


def _own(rows: pa.Table, keys: Sequence[str], part: ChainPart) -> pa.Table:
    """The rows of a range, with their hashes."""
    names = {name.casefold(): name for name in rows.column_names}
    hashes = hash_keys([rows.column(names[key.casefold()]) for key in keys], len(rows))
    here = (hashes >= np.uint64(part.low)) & (hashes <= np.uint64(part.high))
    if not here.all():
        rows, hashes = rows.filter(pa.array(here)), hashes[here]
    return rows.add_column(0, HASH, pa.array(hashes, pa.uint64()))


def _greatest(rows: pa.Table, time: str | None) -> int | None:
    if time is None or not len(rows):
        return None
    names = {name.casefold(): name for name in rows.column_names}
    greatest = pc.max(rows.column(names[time.casefold()]))
    return greatest.cast(pa.timestamp("us", greatest.type.tz)).cast(pa.int64()).as_py() if greatest.is_valid else None


def _later(one: int | None, other: int | None) -> int | None:
    return max((at for at in (one, other) if at is not None), default=None)


def _output(rows: pa.Table, folder: Path, prefix: str) -> str:
    """Write the rows of an epoch where the rest of it finds them; a killed epoch is folded anew."""
    if not len(rows):
        return ""
    path = folder / f"{prefix}.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    return str(path)
