"""Values as databases have them, as Arrow does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from headgate.tasks.heavy import pa

__all__ = ["converter", "moment", "rows_of"]


def moment(value: Any) -> datetime | None:
    """A moment as databases have it: a datetime, ISO 8601, or milliseconds since 1970; in UTC if it names no zone."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1e3, UTC)
    at: datetime | None = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at if at is None or at.tzinfo else at.replace(tzinfo=UTC)


def converter(kind: pa.DataType) -> Callable[[Any], Any]:
    """From a value that is not null to what an Arrow array of a type takes; raises what does not fit.

    >>> converter(pa.bool_())("f"), converter(pa.decimal128(9, 2))("1.50"), converter(pa.string())(3)
    (False, Decimal('1.50'), '3')
    """
    known: list[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]]] = [
        (pa.types.is_boolean, _truth),
        (pa.types.is_integer, _whole),
        (pa.types.is_floating, float),
        (pa.types.is_decimal, lambda value: Decimal(str(value))),
        (pa.types.is_timestamp, moment),
        (pa.types.is_date, lambda value: date.fromisoformat(value) if isinstance(value, str) else value),
        (pa.types.is_binary, lambda value: value.encode() if isinstance(value, str) else bytes(value)),
        (pa.types.is_map, lambda value: list(value.items())),
        (pa.types.is_nested, lambda value: value),
    ]
    return next((of for test, of in known if test(kind)), _text)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


TRUTHS = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}


def _truth(value: Any) -> bool:
    try:
        return TRUTHS[str(value).lower()]
    except KeyError:
        raise ValueError(f"{value!r} is neither true nor false") from None


def _whole(value: Any) -> int:
    if isinstance(value, float) and value != int(value):
        raise ValueError(f"{value!r} is no whole number")
    return int(value)


def rows_of(values: Sequence[Sequence[Any]], schema: pa.Schema) -> tuple[pa.RecordBatch, list[tuple[int, str]]]:
    """Rows of values as Arrow ones, and the places of rows that have a value of another type, with why.

    >>> made, broken = rows_of([("1", 2.0), ("x", 3.0)], pa.schema([("a", pa.int64()), ("b", pa.float64())]))
    >>> made.to_pylist(), broken
    ([{'a': 1, 'b': 2.0}], [(1, "a: invalid literal for int() with base 10: 'x'")])
    """
    converters = [converter(field.type) for field in schema]
    with suppress(ValueError, TypeError, ArithmeticError, pa.ArrowException):
        return _batch(
            [[None if v is None else convert(v) for v, convert in zip(row, converters, strict=True)] for row in values],
            schema,
        ), []
    good: list[list[Any]] = []
    broken: list[tuple[int, str]] = []
    for place, row in enumerate(values):
        made: list[Any] = []
        for field, convert, value in zip(schema, converters, row, strict=True):
            try:
                made.append(None if value is None else pa.scalar(convert(value), field.type).as_py())
            except (ValueError, TypeError, ArithmeticError, pa.ArrowException) as error:
                broken.append((place, f"{field.name}: {error}"))
                break
        else:
            good.append(made)
    return _batch(good, schema), broken


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
