"""Values of JSON and CSV as columns want them, one by one: what Arrow's own readers refuse comes here.

A value that is nothing of its column's type is null, as it is when Spark reads.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

__all__ = ["from_json", "from_text"]

Convert = Callable[[Any], Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
SPECIAL |= {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf}
IN_CSV = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}

_TIME = re.compile(
    r"(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ](?:(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?)?)?)?"
)
"""Times as Spark reads them where no pattern is given."""

_WHOLE, _NUMBER = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def from_json(kind: pa.DataType) -> Convert:
    """The function that makes a column's value of a parsed JSON value."""
    if pa.types.is_list(kind):
        item = from_json(kind.value_type)
        return lambda value: _all_fit(value, [item(one) for one in value]) if isinstance(value, list) else None
    if pa.types.is_struct(kind):
        fields = [(field.name, from_json(field.type)) for field in kind]
        return lambda value: {n: make(value.get(n)) for n, make in fields} if isinstance(value, dict) else None
    if pa.types.is_map(kind):
        item = from_json(kind.item_type)
        return lambda value: _pairs(value, item) if isinstance(value, dict) else None
    scalar = _json_scalar(kind)
    return lambda value: None if value is None else _tried(scalar, value)


def _all_fit(given: Iterable[Any], made: list[Any]) -> list[Any] | None:
    """The items of a list or map, unless one does not fit: then all of it is null."""
    return None if any(new is None and old is not None for old, new in zip(given, made, strict=True)) else made


def _pairs(given: Mapping[str, Any], item: Convert) -> list[tuple[str, Any]] | None:
    made = _all_fit(given.values(), [item(one) for one in given.values()])
    return None if made is None else list(zip(given, made, strict=True))


def from_text(kind: pa.DataType) -> Convert:
    """The function that makes a column's value of a text between two separators."""
    scalar = _text_scalar(kind)
    return lambda text: None if text is None else _tried(scalar, text)


def _tried(scalar: Convert, value: Any) -> Any:
    try:
        return scalar(value)
    except (ValueError, TypeError, ArithmeticError):
        return None


def _json_scalar(kind: pa.DataType) -> Convert:
    if pa.types.is_string(kind):
        return _text
    if pa.types.is_boolean(kind):
        return lambda value: value if isinstance(value, bool) else None
    if pa.types.is_integer(kind):
        return lambda value: _whole(value, kind) if type(value) is int else None
    if pa.types.is_floating(kind):
        return lambda value: SPECIAL.get(value) if isinstance(value, str) else _float(value)
    if pa.types.is_decimal(kind):
        return lambda value: None if isinstance(value, bool) else _decimal(str(value), kind)
    if pa.types.is_timestamp(kind):
        return lambda value: _time(value) if isinstance(value, str) else EPOCH + timedelta(seconds=_int(value))
    if pa.types.is_date(kind):
        return lambda value: _day_or_count(value) if isinstance(value, str) else None
    return lambda value: b64decode(value, validate=True)


def _text_scalar(kind: pa.DataType) -> Convert:
    if pa.types.is_string(kind):
        return lambda text: text
    if pa.types.is_boolean(kind):
        return lambda text: {"true": True, "false": False}.get(text.lower())
    if pa.types.is_integer(kind):
        return lambda text: _whole(int(text), kind) if _WHOLE.fullmatch(text) else None
    if pa.types.is_floating(kind):
        return lambda text: float(text) if _NUMBER.fullmatch(text) else IN_CSV.get(text)
    if pa.types.is_decimal(kind):
        return lambda text: _decimal(text, kind)
    if pa.types.is_timestamp(kind):
        return _time
    if pa.types.is_date(kind):
        return _day
    return lambda text: text.encode()


def _whole(value: int, kind: pa.DataType) -> int | None:
    most = 1 << (kind.bit_width - 1)
    return value if -most <= value < most else None


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _decimal(text: str, kind: pa.DataType) -> Decimal | None:
    """A number rounded to its column's scale; none if it has too many digits before the point.

    >>> _decimal("1.005", pa.decimal128(10, 2)), _decimal("NaN", pa.decimal128(10, 2))
    (Decimal('1.01'), None)
    """
    number = Decimal(text)
    if not number.is_finite():
        return None
    rounded = number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, Context(prec=80))
    return rounded if rounded.adjusted() < kind.precision - kind.scale or not rounded else None


def _time(text: str) -> datetime | None:
    """A time; one without a zone is in UTC.

    >>> _time("2026-02-03 04:05:06.789"), _time("2026-02-03T04:05:06+02:00").isoformat(), _time("soon")
    (datetime.datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=datetime.timezone.utc), '2026-02-03T02:05:06+00:00', None)
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[at] or at in (2, 3)) for at in range(1, 7))
    micros = int((match[7] or "0").ljust(6, "0")[:6])
    moment = datetime(year, month, day, hour, minute, second, micros, _zone(match[8]))
    return moment.astimezone(UTC)


def _zone(text: str | None) -> timezone:
    if text is None or not text.startswith(("+", "-")):
        return UTC
    hours, minutes = [*text[1:].split(":"), "0"][:2] if ":" in text or len(text) < 5 else (text[1:3], text[3:])
    sign = -1 if text.startswith("-") else 1
    return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes)))


def _text(value: Any) -> str:
    """A text without halves of characters, which are no Unicode; of any other value its JSON."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    return json.dumps(value, separators=(",", ":"))


def _day_or_count(text: str) -> date:
    """A day, or how many days after the first of 1970."""
    return _day(text) or date.fromordinal(719_163 + int(text))


def _day(text: str) -> date | None:
    match = re.fullmatch(r"(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ].*)?)?)?", text.strip())
    return None if match is None else date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
