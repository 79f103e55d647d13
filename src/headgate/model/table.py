"""A result as a table: service functions return it, and every edge renders it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Table", "TableColumn"]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column: the key of its values in a row, and how people read it.

    ``form`` is a format of Python for numbers, such as ``,.0f`` or ``.1%``; programs get the plain value. A column
    without a title is for programs only: JSON and CSV have it.
    """

    key: str
    title: str = ""
    unit: str = ""
    form: str = ""

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
