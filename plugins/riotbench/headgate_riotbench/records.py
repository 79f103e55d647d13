"""Values as parsers find them, as typed Arrow columns; rows with a value that does not fit are noted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from headgate.errors import InputError
from headgate.model.schema import Schema
from headgate.tasks.heavy import np, pa, pc

__all__ = ["Failed", "arrow_kinds", "arrow_types", "as_moment", "time_type", "typed"]

Failed = dict[int, str]
"""Rows that do not fit, by their place, and why."""

NOTHING = ("", "null", None)
"""What stands for a value that is missing."""


@cache
def time_type() -> pa.DataType:
    """The type of moments."""
    return pa.timestamp("us", tz="UTC")


@cache
def arrow_types() -> dict[str, pa.DataType]:
    """The SQL types that parsers make."""
    return {
        "string": pa.string(),
        "double": pa.float64(),
        "float": pa.float32(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
        "timestamp": time_type(),
    }


def arrow_kinds(columns: str) -> list[tuple[str, pa.DataType]]:
    """Columns as Arrow has them.

    >>> arrow_kinds("id string, v double")
    [('id', DataType(string)), ('v', DataType(double))]
    """
    known = arrow_types()
    kinds = []
    for column in Schema.parse(columns).columns:
        if column.type not in known:
            message = f"column '{column.name}' is of type {column.type}; it can be one of {', '.join(known)}"
            raise InputError("TASK_REFUSED", message)
        kinds.append((column.name, known[column.type]))
    return kinds


def typed(name: str, values: Sequence[Any], kind: pa.DataType, failed: Failed) -> pa.Array:
    """A column of values, texts or JSON's own; a value that does not fit becomes null, and its row is noted.

    >>> failed: Failed = {}
    >>> typed("v", ["1.5", 2, None, "warm"], pa.float64(), failed).to_pylist()
    [1.5, 2.0, None, None]
    >>> failed
    {3: "v is 'warm', which is no double"}
    """
    if pa.types.is_floating(kind):
        return _floats(name, values, kind, failed)
    try:
        return pa.array(list(map(_readers()[kind], values)), kind)
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        return _one_by_one(name, values, kind, failed)


def _floats(name: str, values: Sequence[Any], kind: pa.DataType, failed: Failed) -> pa.Array:
    """Most often they are all numbers, or all numbers written as texts, but for some that are missing."""
    try:
        column = pa.array(values, pa.float64() if not values or not _has_text(values) else pa.string()).cast(kind)
        if pc.all(pc.is_finite(column)).as_py() is not False:
            return column
    except (pa.ArrowException, TypeError, ValueError):
        pass
    return _one_by_one(name, values, kind, failed)


def _has_text(values: Sequence[Any]) -> bool:
    """Whether the first value that is there is a text."""
    return isinstance(next((value for value in values if value is not None), None), str)


def _one_by_one(name: str, values: Sequence[Any], kind: pa.DataType, failed: Failed) -> pa.Array:
    read = _readers()[kind]
    column = []
    for place, value in enumerate(values):
        try:
            column.append(pa.scalar(read(value), kind).as_py())
        except (ValueError, TypeError, OverflowError, pa.ArrowException):
            column.append(None)
            word = next(word for word, other in arrow_types().items() if other == kind)
            failed.setdefault(place, f"{name} is {_short(value)}, which is no {word}")
    return pa.array(column, kind)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _float(value: Any) -> float | None:
    if value in NOTHING:
        return None
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(value)
    return number


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
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return datetime.fromtimestamp(float(value) / 1e3, UTC)
    except OSError:  # what the system's clock cannot count
        raise ValueError(value) from None


@cache
def _readers() -> dict[pa.DataType, Callable[[Any], Any]]:
    """How a value of each type is read."""
    return {
        pa.string(): _text,
        pa.float64(): _float,
        pa.float32(): _float,
        pa.int32(): _whole,
        pa.int64(): _whole,
        pa.bool_(): _truth_or_type_error,
        time_type(): as_moment,
    }
