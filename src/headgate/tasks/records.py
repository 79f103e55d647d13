"""Values as parsers find them, as typed Arrow columns; rows with a value that does not fit are told of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import InputError
from headgate.model.schema import Schema

__all__ = ["KINDS", "Bad", "arrow_kinds", "as_moment", "typed"]

Bad = dict[int, str]
"""Rows that do not fit, by their place, and why."""

TIMES = pa.timestamp("us", tz="UTC")

KINDS: dict[str, pa.DataType] = {
    "string": pa.string(),
    "double": pa.float64(),
    "float": pa.float32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": TIMES,
}
"""The SQL types that parsers make."""

NOTHING = ("", "null", None)
"""What stands for a value that is missing."""


def arrow_kinds(columns: str) -> list[tuple[str, pa.DataType]]:
    """Columns as Arrow has them.

    >>> arrow_kinds("id string, v double")
    [('id', DataType(string)), ('v', DataType(double))]
    """
    found = []
    for column in Schema.parse(columns).columns:
        if column.type not in KINDS:
            told = f"column '{column.name}' is to be of type {column.type}; it can be one of {', '.join(KINDS)}"
            raise InputError("TASK_REFUSED", told)
        found.append((column.name, KINDS[column.type]))
    return found


def typed(name: str, values: Sequence[Any], kind: pa.DataType, bad: Bad) -> pa.Array:
    """A column of values, texts or JSON's own; a value that does not fit becomes null, and its row is noted.

    >>> bad: Bad = {}
    >>> typed("v", ["1.5", 2, None, "warm"], pa.float64(), bad).to_pylist()
    [1.5, 2.0, None, None]
    >>> bad
    {3: "v is 'warm', which is no double"}
    """
    if pa.types.is_floating(kind):
        return _floats(name, values, kind, bad)
    try:
        return pa.array(list(map(_READERS[kind], values)), kind)
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        return _one_by_one(name, values, kind, bad)


def _floats(name: str, values: Sequence[Any], kind: pa.DataType, bad: Bad) -> pa.Array:
    """Most often they are all numbers, or all numbers written as texts, but for some that are missing."""
    try:
        found = pa.array(values, pa.float64() if not values or not _has_text(values) else pa.string()).cast(kind)
        if pc.all(pc.is_finite(found)).as_py() is not False:
            return found
    except (pa.ArrowException, TypeError, ValueError):
        pass
    return _one_by_one(name, values, kind, bad)


def _has_text(values: Sequence[Any]) -> bool:
    """Whether the first value that is there is a text."""
    return isinstance(next((value for value in values if value is not None), None), str)


def _one_by_one(name: str, values: Sequence[Any], kind: pa.DataType, bad: Bad) -> pa.Array:
    read = _READERS[kind]
    found = []
    for place, value in enumerate(values):
        try:
            found.append(pa.scalar(read(value), kind).as_py())
        except (ValueError, TypeError, OverflowError, pa.ArrowException):
            found.append(None)
            word = next(word for word, other in KINDS.items() if other == kind)
            bad.setdefault(place, f"{name} is {_short(value)}, which is no {word}")
    return pa.array(found, kind)


def _short(value: Any) -> str:
    told = repr(value)
    return told if len(told) <= 60 else f"{told[:57]}..."


def _float(value: Any) -> float | None:
    if value in NOTHING:
        return None
    found = float(value)
    if not np.isfinite(found):
        raise ValueError(value)
    return found


_WHOLE = re.compile(r"\s*[+-]?\d+\s*\Z")


def _whole(value: Any) -> int | None:
    if value in NOTHING:
        return None
    if isinstance(value, str) and not _WHOLE.match(value):
        raise ValueError(value)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    return int(value)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        raise TypeError(value)
    return str(value)


_TRUTHS = {True: True, False: False, "true": True, "false": False}


def _truth(value: Any) -> bool | None:
    return None if value in NOTHING else _TRUTHS[value.lower() if isinstance(value, str) else value]


def _truth_or_type_error(value: Any) -> bool | None:
    try:
        return _truth(value)
    except KeyError:
        raise ValueError(value) from None


def as_moment(value: Any) -> datetime | None:
    """A moment: milliseconds since 1970, as a number or a text, or ISO 8601, in UTC if it names no zone.

    >>> as_moment("1422748800000") == as_moment(1422748800000) == as_moment("2015-02-01 00:00:00")
    True
    """
    if value in NOTHING:
        return None
    if isinstance(value, str) and not _WHOLE.match(value):
        found = datetime.fromisoformat(value)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    try:
        return datetime.fromtimestamp(float(value) / 1e3, UTC)
    except OSError:  # what the system's clock cannot count
        raise ValueError(value) from None


_READERS: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.string(): _text,
    pa.float64(): _float,
    pa.float32(): _float,
    pa.int32(): _whole,
    pa.int64(): _whole,
    pa.bool_(): _truth_or_type_error,
    TIMES: as_moment,
}
