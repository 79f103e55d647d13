"""Numbers over time in little memory: columns of single-precision floats, the newest so many."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence

__all__ = ["Series", "buckets"]

UNKNOWN = math.nan


class Series:
    """Named columns that grow together, one value each a moment; what is not given is unknown.

    >>> rates = Series(("rows",), kept=2, age=1)
    >>> for rows in (1.0, 2.0, 3.0):
    ...     rates.append({"rows": rows})
    >>> rates.last("rows", 9)
    [2.0, 3.0]
    """

    __slots__ = ("_columns", "_kept")

    def __init__(self, names: Sequence[str], kept: int, age: int = 0) -> None:
        """``age`` is at how many moments it was not there yet."""
        self._kept = kept
        self._columns = {name: array("f", [UNKNOWN] * min(age, kept)) for name in names}

    def append(self, values: Mapping[str, float | None]) -> None:
        """Add a moment."""
        for name, column in self._columns.items():
            value = values.get(name)
            column.append(UNKNOWN if value is None else value)
            if len(column) >= 2 * self._kept:
                del column[: -self._kept]

    def last(self, name: str, count: int) -> list[float | None]:
        """The newest values of a column, oldest first; what is unknown is ``None``."""
        column = self._columns[name]
        return [None if math.isnan(value) else value for value in column[-min(count, self._kept) :]]


def buckets(values: Sequence[float | None], count: int) -> list[float | None]:
    """The means of equal stretches, at most so many, for a line that is a few pixels wide.

    >>> buckets([1.0, 3.0, None, None, 5.0], 3)
    [2.0, None, 5.0]
    """
    size = max(1, -(-len(values) // count))
    return [_mean(values[at : at + size]) for at in range(0, len(values), size)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(f"{sum(known) / len(known):.3g}") if known else None
