"""Spark SQL's column types, and columns as in ``CREATE TABLE``, read without Spark.

The grammar is that of Spark's ``DataType.fromDDL``. A general SQL parser would not do: it takes the types of every
database for granted, and ``text string`` for a type.
"""

from __future__ import annotations

import re
from functools import lru_cache

from headgate.errors import BadValue, nearest, shorten

__all__ = ["columns_of_type", "quoted", "sql_type"]

MAX_DEPTH = 50
MAX_LENGTH = 100_000

_PLAIN = {
    "binary": "binary",
    "boolean": "boolean",
    "bigint": "bigint",
    "byte": "tinyint",
    "date": "date",
    "double": "double",
    "float": "float",
    "int": "int",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "short": "smallint",
    "smallint": "smallint",
    "string": "string",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "tinyint": "tinyint",
    "variant": "variant",
    "void": "void",
}
_OTHER = ("array", "char", "decimal", "geography", "geometry", "interval", "map", "struct", "time", "varchar")
_DECIMAL, _CHAR = ("decimal", "dec", "numeric"), {"char": "char", "character": "char", "varchar": "varchar"}
_SPANS = (("year", "month"), ("day", "hour", "minute", "second"))
_EXAMPLES = "Spark SQL's types: string, bigint, double, boolean, timestamp, ..."

_TOKEN = re.compile(
    r"""
    (?P<blank>  \s+ | --[^\n]* | /\*.*?\*/ )
  | (?P<quoted> `(?:[^`]|``)*` )
  | (?P<text>   '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
  | (?P<number> \d+(?![A-Za-z0-9_]) )
  | (?P<word>   [A-Za-z0-9_]+ )
  | (?P<mark>   [<>(),:] )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"(?!\d+([eE]\d+)?\Z)[A-Za-z0-9_]+\Z")
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@lru_cache(maxsize=4_096)
def sql_type(text: str) -> str:
    """Return a Spark SQL type in the spelling that Spark itself shows.

    >>> sql_type("Long"), sql_type("array < string >"), sql_type("struct<x int, Y: timestamp>")
    ('bigint', 'array<string>', 'struct<x:int,Y:timestamp>')
    >>> sql_type("strng")
    Traceback (most recent call last):
        ...
    headgate.errors.BadValue: unknown column type 'strng'
    """
    reader = _Reader(text)
    name = reader.type(0)
    reader.end()
    return name


@lru_cache(maxsize=4_096)
def columns_of_type(text: str) -> tuple[tuple[str, str], ...]:
    """Split a table's columns as in SQL's ``CREATE TABLE``: names and types.

    >>> columns_of_type("id string, reading struct<v: double, u: string>, `the city` string not null")
    (('id', 'string'), ('reading', 'struct<v:double,u:string>'), ('the city', 'string'))
    """
    reader = _Reader(text)
    columns = [reader.column(0)]
    while reader.take(","):
        columns.append(reader.column(0))
    reader.end()
    return tuple(columns)


def quoted(name: str) -> str:
    """A column's name as it must be written in a list of columns.

    >>> quoted("city"), quoted("the city")
    ('city', '`the city`')
    """
    return name if _NAME.match(name) else f"`{name.replace('`', '``')}`"


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise BadValue(f"a list of columns of more than {MAX_LENGTH:,} characters")
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        self.position = 0
        start = 0
        while start < len(text):
            match = _TOKEN.match(text, start)
            if match is None:
                message = f"{shorten(text[start : start + 20])} in {shorten(text)} does not belong there"
                raise BadValue(message, "columns such as 'id string, v double', odd names in `backquotes`")
            if match.lastgroup != "blank":
                self.tokens.append((match.lastgroup or "", match.group()))
            start = match.end()

    def type(self, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise BadValue(f"a column type nested deeper than {MAX_DEPTH} levels")
        kind, written = self._next()
        name = written.lower() if kind == "word" else ""
        if name == "timestamp" and self._words("without", "time", "zone"):
            return "timestamp_ntz"
        if name == "string" and self._words("collate"):
            return f"string collate {self._word().upper()}"
        if name in _PLAIN:
            return _PLAIN[name]
        if name in _DECIMAL:
            return self._decimal()
        if name in _CHAR:
            return f"{_CHAR[name]}({self._numbers(1, 1, name)[0]})"
        if name == "time":
            return f"time({(self._numbers(0, 1, name) or [6])[0]})"
        if name == "interval":
            return self._interval()
        if name in ("geography", "geometry"):
            self._expect("(", name)
            system = self._word().lower()
            self._expect(")", name)
            return f"{name}({system})"
        if name in ("array", "map", "struct"):
            return self._nested(name, depth)
        raise BadValue(
            f"unknown column type {shorten(written)}", _EXAMPLES, nearest(written, [*_PLAIN, *_DECIMAL, *_OTHER])
        )

    def column(self, depth: int) -> tuple[str, str]:
        kind, written = self._next()
        name = written[1:-1].replace("``", "`") if kind == "quoted" else written
        if not name or kind not in ("quoted", "word") or (kind == "word" and not _NAME.match(name)):
            raise BadValue(
                f"{shorten(written)} in {shorten(self.text)} is not the name of a column",
                "a name and a type, such as 'id string', odd names in `backquotes`",
            )
        if _CONTROL.search(name):
            raise BadValue(f"column {shorten(name)} has a control character in its name")
        self.take(":")
        if self.position == len(self.tokens) or self.tokens[self.position] == ("mark", ","):
            raise BadValue(f"column {shorten(name)} has no type", f"a name and a type, such as '{quoted(name)} string'")
        type_name = self.type(depth + 1)
        self._words("not", "null")
        if self._words("comment"):
            self._next()
        return name, type_name

    def take(self, mark: str) -> bool:
        """Step over a mark if it is the next token."""
        here = self.position < len(self.tokens) and self.tokens[self.position] == ("mark", mark)
        self.position += here
        return here

    def end(self) -> None:
        if self.position < len(self.tokens):
            raise BadValue(f"{shorten(self._next()[1])} in {shorten(self.text)} does not belong there", "a comma")

    def _next(self) -> tuple[str, str]:
        if self.position == len(self.tokens):
            message = f"{shorten(self.text)} ends too early" if self.tokens else "an empty list of columns"
            raise BadValue(message, "columns such as 'id string, v double'")
        self.position += 1
        return self.tokens[self.position - 1]

    def _word(self) -> str:
        kind, written = self._next()
        if kind not in ("word", "number"):
            raise BadValue(f"{shorten(written)} in {shorten(self.text)} does not belong there", "a word")
        return written

    def _expect(self, mark: str, name: str) -> None:
        if not self.take(mark):
            raise BadValue(f"column type {name} in {shorten(self.text)} lacks '{mark}'", _EXAMPLES)

    def _words(self, *words: str) -> bool:
        """Step over these words if they come next."""
        ahead = self.tokens[self.position : self.position + len(words)]
        here = [token.lower() for kind, token in ahead if kind == "word"] == list(words)
        self.position += len(words) * here
        return here

    def _numbers(self, least: int, most: int, name: str) -> list[int]:
        numbers: list[int] = []
        if self.take("("):
            while len(numbers) < most and (not numbers or self.take(",")):
                kind, written = self._next()
                if kind != "number" or len(written) > 9:
                    raise BadValue(f"column type {name} of {shorten(written)}", f"a number, such as {name}(10)")
                numbers.append(int(written))
            self._expect(")", name)
        if len(numbers) < least:
            raise BadValue(f"column type {name} without a length", f"{name}(10)")
        return numbers

    def _decimal(self) -> str:
        given = self._numbers(0, 2, "decimal")
        precision, scale = (*given, 0)[:2] if given else (10, 0)
        if not 0 <= scale <= precision <= 38:
            raise BadValue(f"column type decimal({precision},{scale})", "decimal(p,s) with s at most p, p at most 38")
        return f"decimal({precision},{scale})"

    def _interval(self) -> str:
        for units in _SPANS:
            for first, unit in enumerate(units):
                if self._words(unit):
                    last = next((end for end in units[first + 1 :] if self._words("to", end)), None)
                    return f"interval {unit}" + (f" to {last}" if last else "")
        return "interval"

    def _nested(self, name: str, depth: int) -> str:
        self._expect("<", name)
        inner: list[str] = []
        if name == "struct":
            while not self.take(">"):
                if inner:
                    self._expect(",", name)
                field, kind = self.column(depth + 1)
                inner.append(f"{quoted(field)}:{kind}")
            return f"struct<{','.join(inner)}>"
        inner.append(self.type(depth + 1))
        if name == "map":
            self._expect(",", name)
            inner.append(self.type(depth + 1))
        self._expect(">", name)
        return f"{name}<{','.join(inner)}>"
