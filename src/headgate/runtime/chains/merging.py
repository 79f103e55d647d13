"""Merging: several files of a table become one, beside the epochs. The next commit names it in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from headgate.model.chain_work import UNTIL, Chain
from headgate.runtime.chains.files import MERGED, PartReader, written
from headgate.store.chain_entries import ChainKept, ChainPart, StateFile

__all__ = ["Merge", "Merged", "due_merges", "merged", "with_merged"]

FILES = 6
"""So many files of a table may be read in each epoch before some are merged."""

FACTOR = 2
"""An older file is merged too if the newer ones together have at least one of so many of its rows."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Files of a table and a range that are to become one."""

    life: str
    table: str
    part: ChainPart
    """The range, with these files only."""

    dead: int | None
    """Rows that end there or before are left out."""

    @property
    def files(self) -> tuple[StateFile, ...]:
        return self.part.files[self.table]


@dataclass(frozen=True, slots=True)
class Merged:
    """What files have become: one, or none if all their rows were dead."""

    merge: Merge
    file: StateFile | None


def due_merges(kept: ChainKept, axes: Mapping[str, str]) -> list[Merge]:
    """What is to be merged of a chain."""
    due = []
    for part in kept.parts:
        for table, files in part.files.items():
            newest = newest_to_merge([file.rows for file in files])
            if newest:
                some = ChainPart(part.low, part.high, {table: files[-newest:]})
                due.append(Merge(kept.life, table, some, kept.dead.get(axes[table])))
    return due


def newest_to_merge(rows: Sequence[int]) -> int:
    """How many of the newest files are to be merged, by how many rows each has; those not much larger than the rest.

    So a row is written again each time that what is newer has grown by a share of it: about the logarithm of the
    number of rows times.

    >>> newest_to_merge([1] * 6), newest_to_merge([1] * 7), newest_to_merge([900, 1, 1, 1, 1, 1, 1])
    (0, 7, 6)
    """
    if len(rows) <= FILES:
        return 0
    count, total = 2, sum(rows[-2:])
    while count < len(rows) and rows[-count - 1] <= FACTOR * total:
        total += rows[-count - 1]
        count += 1
    return count


def merged(merge: Merge, chain: Chain, folder: Path) -> Merged:
    """Merge files; those that there are stay as they are."""
    table = next(one for one in chain.tables if one.name == merge.table)
    rows = PartReader(folder, chain.tables, merge.part).rows(merge.table)
    if merge.dead is not None:
        rows = rows.filter(pc.greater(rows.column(UNTIL), merge.dead))
    rows = chain.merge(table.name, rows)
    return Merged(merge, written(folder, MERGED, rows) if len(rows) else None)


def with_merged(kept: ChainKept, done: Sequence[Merged]) -> ChainKept:
    """A chain with merged files in the place of those that they were; what has changed since is left as it is."""
    for one in done:
        if one.merge.life == kept.life:
            parts = tuple(_replaced(part, one) for part in kept.parts)
            kept = ChainKept(kept.life, kept.form, kept.seen, parts, kept.dead)
    return kept


def _replaced(part: ChainPart, one: Merged) -> ChainPart:
    merge, known = one.merge, part.files.get(one.merge.table, ())
    if (part.low, part.high) != (merge.part.low, merge.part.high):
        return part
    begins = [at for at in range(len(known)) if known[at : at + len(merge.files)] == merge.files]
    if not begins:
        return part
    at = begins[0]
    new = () if one.file is None else (one.file,)
    files = {**part.files, merge.table: (*known[:at], *new, *known[at + len(merge.files) :])}
    return ChainPart(part.low, part.high, files)
