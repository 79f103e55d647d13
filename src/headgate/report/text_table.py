"""Rows as a table of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headgate.errors import printable

__all__ = ["text_table"]


def text_table(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Rows in columns, the first row being the head; columns of numbers stand on the right.

    >>> print(text_table([("task", "rows"), ("parse", "12"), ("write", "7")], right=[1]), end="")
    task   rows
    parse    12
    write     7
    """
    to_right = set(right)
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if column in to_right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines) + "\n"
