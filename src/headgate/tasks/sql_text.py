"""Pieces of Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.model.work import RowWise

__all__ = ["escaped", "quoted", "with_columns"]


def quoted(name: str) -> str:
    """A column's name as SQL wants it.

    >>> quoted("the `city`")
    '`the ``city```'
    """
    return "`" + name.replace("`", "``") + "`"


def escaped(text: str) -> str:
    """A text as it is written between single quotes.

    >>> escaped("it's")
    "it\\\\'s"
    """
    return text.replace("\\", "\\\\").replace("'", "\\'")


def with_columns(names: Sequence[str], new: Mapping[str, str]) -> RowWise:
    """The old columns, those of a new one's name replaced in place, the other new ones at the end.

    >>> with_columns(["a", "b"], {"A": "a + 1", "c": "b"}).columns
    (('A', 'a + 1'), ('b', '`b`'), ('c', 'b'))
    """
    by_folded = {name.casefold(): (name, expression) for name, expression in new.items()}
    columns = [by_folded.pop(name.casefold(), (name, quoted(name))) for name in names]
    columns += by_folded.values()
    return RowWise(tuple(name for name, _ in columns), columns=tuple(columns))
