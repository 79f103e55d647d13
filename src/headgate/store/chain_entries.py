"""What a commit says of the state of windows and joins: which files hold it, by hash range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["LAST_HASH", "ChainKept", "ChainPart", "StateFile"]

LAST_HASH = 2**64 - 1


class StateFile(NamedTuple):
    """An immutable file with rows of a table of state, sorted by hash."""

    name: str
    rows: int
    bytes: int
    first: int
    last: int
    """The least and the greatest hash."""

    ends: int
    """Its rows are all dead once the mark of their table's axis is that far."""

    begins: int
    """None of its rows is dead before that."""


@dataclass(frozen=True, slots=True)
class ChainPart:
    """The state of one range of hashes, both ends included. A file may reach beyond the range: others read that."""

    low: int = 0
    high: int = LAST_HASH
    files: Mapping[str, tuple[StateFile, ...]] = field(default_factory=dict)
    """By table, oldest first."""


@dataclass(frozen=True, slots=True)
class ChainKept:
    """The state of a stateful task after an epoch."""

    life: str
    """The task's signature, and the snapshot since which its state counts."""

    form: str
    """Stands for the tables that it has; state of another form is not read."""

    seen: tuple[int | None, ...]
    """For each side the greatest event time so far, in microseconds since 1970."""

    parts: tuple[ChainPart, ...]
    dead: Mapping[str, int] = field(default_factory=dict)
    """The mark of each axis: rows that end at it or before are never used again."""

    @property
    def files(self) -> frozenset[str]:
        return frozenset(file.name for part in self.parts for some in part.files.values() for file in some)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self._each())

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self._each())

    def _each(self) -> frozenset[StateFile]:
        # After a resize several ranges may share a file.
        return frozenset(file for part in self.parts for some in part.files.values() for file in some)
