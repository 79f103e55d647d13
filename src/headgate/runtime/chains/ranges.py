"""Hash ranges: how state and rows are divided among partitions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from headgate.store.chain_entries import LAST_HASH, ChainKept, ChainPart, StateFile

__all__ = ["appended", "empty", "living", "resliced"]


def empty(count: int) -> tuple[ChainPart, ...]:
    """Equal ranges without state.

    >>> [f"{part.low:x}" for part in empty(2)]
    ['0', '8000000000000000']
    """
    edges = [(LAST_HASH + 1) * place // count for place in range(count + 1)]
    return tuple(ChainPart(low, high - 1) for low, high in pairwise(edges))


def resliced(parts: Sequence[ChainPart], count: int) -> tuple[ChainPart, ...]:
    """The same state in another number of equal ranges. No file is written: two ranges may read parts of one."""
    return tuple(ChainPart(part.low, part.high, _within(parts, part)) for part in empty(count))


def _within(parts: Sequence[ChainPart], wanted: ChainPart) -> Mapping[str, tuple[StateFile, ...]]:
    files: dict[str, dict[StateFile, None]] = {}
    for part in parts:
        if part.low <= wanted.high and part.high >= wanted.low:
            for table, some in part.files.items():
                reached = [file for file in some if file.first <= wanted.high and file.last >= wanted.low]
                # Ranges that came out of one share files; each file is read once, in the order in which it was written.
                files.setdefault(table, {}).update(dict.fromkeys(reached))
    return {table: tuple(some) for table, some in files.items() if some}


def appended(part: ChainPart, new: Mapping[str, StateFile]) -> ChainPart:
    """A range with the files that an epoch has added."""
    files = {table: (*part.files.get(table, ()), *filter(None, [new.get(table)])) for table in {*part.files, *new}}
    return ChainPart(part.low, part.high, files)


def living(kept: ChainKept, axes: Mapping[str, str]) -> ChainKept:
    """A chain without the files of which every row is dead; ``axes`` says which mark each table heeds."""

    def alive(table: str, files: Sequence[StateFile]) -> tuple[StateFile, ...]:
        mark = kept.dead.get(axes[table])
        return tuple(file for file in files if mark is None or file.ends > mark)

    parts = tuple(
        ChainPart(part.low, part.high, {t: left for t, some in part.files.items() if (left := alive(t, some))})
        for part in kept.parts
    )
    return ChainKept(kept.life, kept.form, kept.seen, parts, kept.dead)
