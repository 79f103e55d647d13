"""A result as a table: service functions return it, and every edge renders it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Table", "TableColumn"]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column: the key of its values in a row, and how people read it.

    ``form`` is a format of Python for numbers, such as ``,.0f`` or ``.1%``; programs get the plain value. A column
    without a title is for programs only: JSON and CSV have it. ``of`` takes the value from a thing; without it, it is
    the thing's attribute of that key.
    """

    key: str
    title: str = ""
    unit: str = ""
    form: str = ""
    of: Callable[[Any], object] | None = field(default=None, kw_only=True)

    @property
    def heading(self) -> str:
        """The title with its unit.

        >>> TableColumn("latency_s", "latency", "s").heading
        'latency (s)'
        """
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values by column; a value that is missing or ``None`` is unknown. Notes are sentences for people."""

    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[Mapping[str, object], ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, title: str, columns: tuple[TableColumn, ...], things: Iterable[object], *notes: str) -> Table:
        """A table with a row for each of some things.

        >>> Table.of("Numbers", (TableColumn("real"), TableColumn("twice", of=lambda n: 2 * n)), [1, 5]).rows
        ({'real': 1, 'twice': 2}, {'real': 5, 'twice': 10})
        """
        rows = ({x.key: getattr(thing, x.key) if x.of is None else x.of(thing) for x in columns} for thing in things)
        return cls(title, columns, tuple(rows), notes)
