"""SQL expressions as a dataflow carries them: checked, and the columns they read found, without Spark.

The parser is sqlglot in its Spark dialect. The text itself is kept as the user wrote it; Spark gets that.
"""

from __future__ import annotations

from functools import lru_cache

__all__ = ["columns_of", "columns_of_type", "sql_type"]

MAX_LENGTH = 10_000


@lru_cache(maxsize=65_536)
def columns_of(expression: str) -> tuple[str, ...]:
    """Return the columns that a SQL expression reads, in order of first mention.

    Raises ``ValueError`` with one sentence when the text is not a single expression.

    >>> columns_of("upper(city) = 'BERN' and reading.value > 3")
    ('city', 'reading')
    >>> columns_of("value >")
    Traceback (most recent call last):
        ...
    ValueError: not a SQL expression: 'value >' (an operand is missing)
    """
    from sqlglot import exp

    tree = _parsed(expression)
    if not isinstance(tree, (exp.Condition, exp.Interval)) or isinstance(tree, exp.Query):
        raise ValueError(f"not a SQL expression: {_cut(expression)} (a single expression, without alias or statement)")
    if tree.find(exp.Query):
        raise ValueError(f"a query inside an expression: {_cut(expression)} (join the streams instead)")
    found = [column.parts[0].name for column in tree.find_all(exp.Column, bfs=False)]
    return tuple(dict.fromkeys(name for name in found if name))


@lru_cache(maxsize=4_096)
def sql_type(text: str) -> str:
    """Return a Spark SQL type in its canonical spelling.

    >>> sql_type("Long"), sql_type("array<string>"), sql_type("struct<x:int, y:timestamp>")
    ('bigint', 'array<string>', 'struct<x: int, y: timestamp>')
    >>> sql_type("strng")
    Traceback (most recent call last):
        ...
    ValueError: unknown column type 'strng' (types are Spark SQL's: string, bigint, double, boolean, timestamp, ...)
    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    complaint = (
        f"unknown column type {_cut(text)} (types are Spark SQL's: string, bigint, double, boolean, timestamp, ...)"
    )
    if not text.strip() or len(text) > MAX_LENGTH:
        raise ValueError(complaint)
    try:
        built = exp.DataType.build(text, dialect="spark")
        rendered = built.sql("spark")
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError):
        raise ValueError(complaint) from None
    if built.this in (exp.DataType.Type.UNKNOWN, exp.DataType.Type.USERDEFINED) or text.strip().upper() == "STRUCT":
        raise ValueError(complaint)
    return rendered.lower()


def columns_of_type(text: str) -> tuple[tuple[str, str], ...]:
    """Split a table's columns as in SQL's ``CREATE TABLE``: names and types.

    >>> columns_of_type("id string, reading struct<v: double, u: string>")
    (('id', 'string'), ('reading', 'struct<v: double, u: string>'))
    """
    columns = []
    for part in _split_at_commas(text):
        name, _, type_text = part.strip().replace(":", " ", 1 if _colon_names(part) else 0).partition(" ")
        if not name or not type_text.strip():
            raise ValueError(f"column {_cut(part.strip())} needs a name and a type, such as 'id string'")
        columns.append((name.strip("`"), sql_type(type_text.strip())))
    return tuple(columns)


def _colon_names(part: str) -> bool:
    """``a: int`` and ``a:int`` name a column; the colon of ``s struct<x:int>`` does not."""
    head = part.strip().split(" ", 1)[0]
    return ":" in head and "<" not in head.split(":", 1)[0]


def _split_at_commas(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        if char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def _parsed(expression: str) -> object:
    import sqlglot
    from sqlglot.errors import SqlglotError

    if not expression.strip():
        raise ValueError("an empty SQL expression")
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"a SQL expression of more than {MAX_LENGTH:,} characters")
    try:
        return sqlglot.parse_one(expression, dialect="spark")
    except RecursionError:
        raise ValueError(f"a SQL expression nested too deeply: {_cut(expression)}") from None
    except SqlglotError as error:
        raise ValueError(f"not a SQL expression: {_cut(expression)} ({_reason(str(error))})") from None
    except (ValueError, TypeError, AttributeError, IndexError, KeyError):
        raise ValueError(f"not a SQL expression: {_cut(expression)}") from None


def _reason(message: str) -> str:
    if message.startswith("Required keyword"):
        return "an operand is missing"
    if message.startswith("Error tokenizing"):
        return "a quote or comment is not closed"
    return "something in it does not belong there"


def _cut(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
