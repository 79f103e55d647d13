"""SQL expressions as a dataflow carries them: checked, and the columns they read found, without Spark.

The parser is sqlglot in its Spark dialect. The text itself is kept as the user wrote it; Spark gets that.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

__all__ = ["check_query", "check_query_of_rows", "columns_of", "parsed_expression", "spliced"]

MAX_LENGTH = 10_000
MAX_SPLICED_LENGTH = 60_000
"""What an expression may become by bounds and by joining those of several tasks."""

MAX_DEPTH = 100
MAX_FORKS = 6

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What no format could carry, or no terminal should be sent."""

_SILENT = logging.NullHandler()
_MAY_FORK = re.compile(r"[(\[{<]|\w\s+(?=\w)|\bif\b|\binterval\b", re.IGNORECASE)


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
    single = (exp.Condition, exp.Interval, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
    if not isinstance(tree, single) or isinstance(tree, exp.Query) or tree.is_star:
        raise ValueError(f"not a SQL expression: {_cut(expression)} (a single expression, without alias or statement)")
    if tree.find(exp.Query):
        raise ValueError(f"a query inside an expression: {_cut(expression)} (join the streams instead)")
    if tree.find(exp.Placeholder, exp.Parameter):
        raise ValueError(f"a parameter inside an expression: {_cut(expression)} (write the value itself)")
    names = [column.parts[0].name for column in tree.find_all(exp.Column, bfs=False)]
    return tuple(dict.fromkeys(name for name in names if name))


def parsed_expression(expression: str) -> Any:
    """The tree of a SQL expression, as sqlglot has it; raises ``ValueError`` when it is not a single expression."""
    columns_of(expression)
    return _parsed(expression)


def spliced(expression: str, into: Callable[[str], str]) -> str:
    """Replace each column that an expression reads, leaving everything else as it was written.

    >>> spliced("v > 3 and `the city` = 'v' and exists(xs, x -> x > v)", lambda name: f"row.{name}")
    "row.v > 3 and row.`the city` = 'v' and exists(row.xs, x -> x > row.v)"
    """
    from sqlglot import exp

    tree = _parsed(expression, longest=MAX_SPLICED_LENGTH)
    places = {(part.meta["start"], part.meta["end"] + 1) for part in _column_parts(tree, exp.Column)}
    pieces, position = [], 0
    for start, end in sorted(places):
        pieces += [expression[position:start], into(expression[start:end])]
        position = end
    return "".join([*pieces, expression[position:]])


def _column_parts(tree: Any, column: Any) -> list[Any]:
    return [each.parts[0] for each in tree.find_all(column) if "start" in each.parts[0].meta]


def check_query(text: str) -> None:
    """Raise ``ValueError`` with one sentence when a text is not a single SQL query.

    >>> check_query("select city, v * 2 as doubled from `in`")
    >>> check_query("drop table city")
    Traceback (most recent call last):
        ...
    ValueError: not a SQL query: 'drop table city' (a single SELECT)
    """
    from sqlglot import exp

    tree = _parsed(text, "query")
    if not isinstance(tree, exp.Query):
        raise ValueError(f"not a SQL query: {_cut(text)} (a single SELECT)")


def check_query_of_rows(text: str) -> None:
    """Raise ``ValueError`` with one sentence when a text is not a single SQL query over named streams.

    >>> check_query_of_rows("select * from csv.`/etc/passwd`")
    Traceback (most recent call last):
        ...
    ValueError: a SQL query reads 'csv.`/etc/passwd`' (it may read its input ports by name)
    """
    from sqlglot import exp

    check_query(text)
    tree = _parsed(text, "query")
    if tree.find(exp.QueryTransform, exp.Placeholder, exp.Parameter):
        raise ValueError(f"a program or a parameter inside a SQL query: {_cut(text)} (columns and functions only)")
    for table in tree.find_all(exp.Table):
        if table.db or not isinstance(table.this, exp.Identifier):
            raise ValueError(f"a SQL query reads {_cut(table.sql('spark'))} (it may read its input ports by name)")


def _parsed(text: str, what: str = "expression", longest: int = MAX_LENGTH) -> Any:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if not text.strip():
        raise ValueError(f"an empty SQL {what}")
    if len(text) > longest:
        raise ValueError(f"a SQL {what} of more than {longest:,} characters")
    if _CONTROL.search(text):
        raise ValueError(f"a control character in a SQL {what}: {_cut(text)} (write it as an escape: \\u0007)")
    # Unless a handler is there, what the parser cannot make sense of would be logged on the terminal.
    logging.getLogger("sqlglot").addHandler(_SILENT)
    try:
        if what == "query" or len(_MAY_FORK.findall(text)) > MAX_FORKS:
            _check_depth(text)
        into = exp.Condition if what == "expression" else None
        return sqlglot.parse_one(text, into=into, dialect="spark")
    except (RecursionError, _TooDeep):
        raise ValueError(f"a SQL {what} nested too deeply: {_cut(text)}") from None
    except SqlglotError as error:
        raise ValueError(f"not a SQL {what}: {_cut(text)} ({_reason(error)})") from None
    except Exception:  # the parser meets the unforeseen in many ways
        raise ValueError(f"not a SQL {what}: {_cut(text)}") from None


class _TooDeep(Exception):
    pass


def _check_depth(text: str) -> None:
    """Refuse a SQL text that would keep sqlglot's parser busy for ever.

    At some places it tries what follows in one way, goes back and tries another; where these nest, its time doubles
    with each. The places are the name of a type before a bracket, as in ``date(date(date(...)))``, or before another
    name of a type, ``if`` and ``interval`` before anything but a bracket or a value, and joins.
    """
    from sqlglot.dialects.spark import Spark

    kinds = Spark.parser_class.TYPE_TOKENS
    opened: list[tuple[bool, bool]] = []
    nested = forks = joins = 0
    before, after_type = "", False
    for token in Spark().tokenize(text):
        is_type = token.token_type in kinds
        if token.text in ("(", "[", "{") or (token.text == "<" and after_type):
            opened.append((token.text == "<", after_type))
            nested += after_type
        elif token.text in (")", "]", "}", ">", ">>"):
            for mark in token.text:
                # A greater-than sign closes nothing but what a less-than sign has opened.
                if opened and (mark != ">" or opened[-1][0]):
                    nested -= opened.pop()[1]
        forks += (after_type and is_type) or (before == "IF" and token.text != "(")
        forks += before == "INTERVAL" and token.token_type.name not in ("STRING", "NUMBER")
        joins += token.token_type.name.endswith(("JOIN", "APPLY"))
        before, after_type = token.text.upper(), is_type
        if len(opened) > MAX_DEPTH or max(nested, forks, joins // 2) > MAX_FORKS:
            raise _TooDeep


def _reason(error: Exception) -> str:
    details = getattr(error, "errors", [])
    if any(str(detail.get("description")).startswith("Required keyword") for detail in details):
        return "an operand is missing"
    if str(error).startswith("Error tokenizing"):
        return "a quote or comment is not closed"
    return "something in it does not belong there"


def _cut(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
