"""The seventh kind of work: a stateful task as a pure fold over Arrow tables, with state in chains of files.

The runtime owns files, epochs and manifests; a work owns what rows mean. An epoch of one partition goes like this::

    each side -> before (SQL) -> kernel rows -> fold, state read and appended -> output -> after (SQL) -> new rows

Every table of kernel rows and of state has a first column ``__hash`` (uint64), which is
``headgate.tasks.chains.hashing.hash_keys`` of the key columns: a partition is a range of it. It is only an address, so
folds compare key columns as well. Every table of state has a second column ``__until`` (int64): a row is dead once the
mark of its table's axis has reached it. A fold never uses a dead row: the runtime may remove it whenever it suits.

Watermarks, times and marks are microseconds since 1970 in UTC. All tables are ``pyarrow.Table``, all schemas are
``pyarrow.Schema``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from headgate.model.work import RowWise

__all__ = ["HASH", "UNTIL", "Axis", "Chain", "ChainWork", "Folded", "Moment", "StateReader", "StateTable"]

HASH, UNTIL = "__hash", "__until"


class Axis(StrEnum):
    """What says that a row of state is dead."""

    EVENT = "event"
    """The watermark: :attr:`Moment.before` during the fold of an epoch, :attr:`Moment.after` when it is done."""

    CLOCK = "clock"
    """The clock (:attr:`Moment.clock`)."""

    NEVER = "never"
    """Nothing: the state grows with the number of keys."""


@dataclass(frozen=True, slots=True)
class StateTable:
    """A table of state. Two tasks may go on with one another's state where their tables are equal."""

    name: str
    schema: Any
    """Its columns; the first two are ``__hash`` and ``__until``."""

    axis: Axis
    version: int = 1
    key: tuple[str, ...] | None = None
    """The key columns of a table in which the newest row of a key replaces those before. ``None``: all rows count."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When an epoch is folded. The same in a replay."""

    epoch: int
    before: int | None
    """The watermark that the epoch before was folded with; rows that belong to what it closed are late."""

    after: int | None
    """The watermark now, at least ``before``: what ends in (before, after] is closed by this epoch, after its rows."""

    clock: int = 0
    """The time of day at which the epoch began."""


class StateReader(Protocol):
    """The state of one partition before this epoch: what the fold asks for, and possibly more, oldest file first."""

    def rows(self, table: str, after: int | None = None, until: int | None = None) -> Any:
        """At least the rows with ``after < __until <= until`` (``None``: without that limit)."""

    def rows_of(self, table: str, hashes: Any) -> Any:
        """At least the rows with one of these hashes (a NumPy array of uint64, sorted, each once)."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What a fold makes of an epoch."""

    output: Any
    """New rows, with the columns of :attr:`Chain.output`, in the order in which they are passed on."""

    appended: Mapping[str, Any] = field(default_factory=dict)
    """Rows to append to tables of state, sorted by ``__hash``; a table without new rows is left out."""

    late: Sequence[Any] = ()
    """For each side the places of its rows that came too late and were left out, as NumPy arrays of int64."""

    dead: Mapping[Axis, int] = field(default_factory=dict)
    """On each axis: rows of state with ``__until`` up to this are never used again; drop them when it suits."""

    keys: int = 0
    """How many keys the epoch has added to state; of windows, keys of panes."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A stateful task, for given options and types: its state, its output and its fold."""

    tables: tuple[StateTable, ...]
    output: Any
    """The columns that a fold makes."""

    fold: Callable[[Moment, Sequence[Any], StateReader], Folded]
    """From the moment, the rows of each side (one partition's, in order of arrival, with ``__hash``) and the state."""

    merge: Callable[[str, Any], Any]
    """From a table's name and rows of several of its files, oldest first, to fewer rows that mean the same, sorted by
    ``__hash``. Rows that are dead may stay, and what is alive dies when it would have: epochs go on meanwhile, and what
    they append counts beside it."""

    after: RowWise | None = None
    """What the task's rows are of the output's, as Spark SQL; ``None`` if they are the same."""


@dataclass(frozen=True, slots=True)
class ChainWork:
    """A pure fold over Arrow tables with state in chains of files (:mod:`headgate.model.chain_work`)."""

    before: Callable[[Any, Sequence[Sequence[str]]], Sequence[RowWise]]
    """From the options and the names of each side's columns to what the kernel's rows are of the side's rows.

    It runs where the input is written, so that only the columns that the kernel needs are written."""

    start: Callable[[Any, Sequence[Any]], Chain]
    """From the options and the Arrow schema of each side after ``before`` to the chain. Raises
    :class:`~headgate.errors.InputError` for types that it cannot work with."""

    keys: Callable[[Any], Sequence[Sequence[str]]]
    """For each side the key columns after ``before``, whose hash is ``__hash``. None of them: one partition."""

    times: Callable[[Any], Sequence[str | None]]
    """For each side the column of event time after ``before``; ``None`` where there is none.

    The watermark is the least over the sides of (greatest time that earlier epochs had) - :attr:`late_by`."""

    late_by: Callable[[Any], int]
    """How far the watermark is behind, in microseconds."""
