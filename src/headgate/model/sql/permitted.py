"""Whether a SQL text may run beside others': what it calls, how large it is, and what its patterns may cost.

All of it is decided on the text, before it runs, and costs nothing then. What can only be known while it runs has a
bound that is put into the text (:mod:`headgate.model.sql.bounds`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from headgate.errors import BadValue, nearest
from headgate.model.sql.calls import FunctionCall, calls_of
from headgate.model.sql.catalogue import BoundKind, FunctionBound, function_catalogue
from headgate.model.sql.lexer import Word, WordKind, words_of
from headgate.model.sql.pattern_cost import check_pattern, check_wildcards

__all__ = ["MAX_OPERATORS", "check_permitted", "operators_of"]

MAX_OPERATORS = 400
"""Operators of an expression or query. Spark works on chains of them by recursion."""

MAX_DIGITS, MAX_WRITTEN_COUNT, MAX_WIDTH = 400, 100_000, 1_000
LEAST_ERROR = 0.01

_GRAMMAR_WORDS = """
and or not in between is case when then else end as on where having select from join using over filter within group
partition by order union all distinct any some exists values interval lateral except intersect with limit try_cast
timestampadd timestampdiff array map struct decimal dec numeric char character varchar
"""
_GRAMMAR = frozenset(_GRAMMAR_WORDS.split())
"""Words before a bracket that begin no call, because Spark's grammar has them or they name a type."""

_OPERATOR_WORDS = "+ - * / % < > = ! & | ^ ~ and or not between in is like ilike rlike regexp when div"
_OPERATORS = frozenset(_OPERATOR_WORDS.split())
_MATCHING: dict[str, Callable[[str], None]] = {
    "rlike": check_pattern,
    "regexp": check_pattern,
    "like": check_wildcards,
    "ilike": check_wildcards,
}
_CONTINUING = frozenset("|+-*/%&^.[:(") | {"div"}
"""What makes an operand go on after a text."""

_WRITTEN_COUNT = re.compile(r"[+-]?\d{1,12}[LSYlsy]?\Z")
_WIDTHS = re.compile(r"%[^a-zA-Z%]*")


@lru_cache(maxsize=65_536)
def check_permitted(text: str) -> None:
    """Raise ``ValueError`` with one sentence for a SQL text that could harm others.

    >>> check_permitted("upper(city) = 'java_method(1)'")
    >>> check_permitted("size(reflect('java.lang.System', 'exit', 3))")
    Traceback (most recent call last):
        ...
    headgate.errors.BadValue: function 'reflect' is not allowed: it runs Java code (at character 6)
    """
    words = words_of(text)
    operators = operators_of(text)
    if operators > MAX_OPERATORS:
        message = f"a SQL text with {operators:,} operators"
        raise BadValue(message, f"at most {MAX_OPERATORS}; divide it into several columns")
    for call in calls_of(text):
        _check_call(call)
    for place, word in enumerate(words):
        if word.kind is WordKind.NAME and word.folded in _MATCHING:
            _check_operand(word, words[place + 1 : place + 3])


@lru_cache(maxsize=65_536)
def operators_of(text: str) -> int:
    """How many operators and calls a text has; none if it is no SQL.

    >>> operators_of("a + b * upper(c)"), operators_of("it's")
    (3, 0)
    """
    try:
        words = words_of(text)
    except ValueError:
        return 0
    return sum(
        word.folded in _OPERATORS if word.text != "(" else place > 0 and words[place - 1].kind is WordKind.NAME
        for place, word in enumerate(words)
        if word.kind in (WordKind.MARK, WordKind.NAME)
    )


def _check_operand(operator: Word, following: Sequence[Word]) -> None:
    """What stands on the right of an operator that compares with a pattern."""
    if not following or following[0].text in ("(", ",", ")"):
        return  # a call, or no operator
    if operator.folded in ("like", "ilike") and following[0].folded in ("any", "all", "some"):
        return  # their patterns stand in brackets, which _check_call looks at
    if following[0].kind is not WordKind.TEXT:
        raise _not_written(operator, "its pattern")
    after = following[1] if len(following) > 1 else None
    if after is not None and (after.kind is WordKind.TEXT or after.text in _CONTINUING):
        raise _not_written(operator, "its pattern")
    _MATCHING[operator.folded](value_of(following[0]))


def _check_call(call: FunctionCall) -> None:
    catalogue, name = function_catalogue(), call.folded
    if call.qualified or call.name.kind is WordKind.QUOTED:
        message = f"a call of {call.name.text}, at character {call.name.start + 1}"
        raise BadValue(message, "the name of a function, without quotes and with nothing before it")
    bound = catalogue.bounded.get(name)
    if bound is not None:
        _check_bound(call, bound)
    elif name in ("any", "all", "some"):
        for argument in filter(_is_text, call.arguments):  # of LIKE
            check_wildcards(value_of(argument[0]))
    elif name not in catalogue.allowed and name not in _GRAMMAR:
        where = f"(at character {call.name.start + 1})"
        if name in catalogue.refused:
            raise BadValue(f"function '{name}' is not allowed: {catalogue.refused[name]} {where}")
        near = nearest(name, catalogue.allowed)
        raise BadValue(f"function {name!r:.60} is not known {where}", "a function of Spark SQL that is allowed", near)


def _check_bound(call: FunctionCall, bound: FunctionBound) -> None:
    if _has_names(call.arguments):
        message = f"named arguments of function '{call.folded}', at character {call.name.start + 1}"
        raise BadValue(message, "arguments by their places")
    # As an operator it has what it compares with in brackets, and nothing else.
    alone = call.folded in _MATCHING and len(call.arguments) == 1
    for place in (0,) if alone else bound.arguments:
        if place < len(call.arguments):
            _CHECKS.get(bound.kind, _nothing)(call, call.arguments[place])


def _has_names(arguments: Sequence[Sequence[Word]]) -> bool:
    return any(word.text == "=>" for argument in arguments for word in argument)


def _nothing(call: FunctionCall, argument: Sequence[Word]) -> None:
    del call, argument


def _check_digits(call: FunctionCall, argument: Sequence[Word]) -> None:
    _check_written(call, argument, MAX_DIGITS)


def _check_count(call: FunctionCall, argument: Sequence[Word]) -> None:
    _check_written(call, argument, MAX_WRITTEN_COUNT)


def _check_written(call: FunctionCall, argument: Sequence[Word], most: int) -> None:
    text = "".join(word.text for word in argument)
    if not _WRITTEN_COUNT.match(text) or abs(int(text.rstrip("LSYlsy"))) > most:
        message = f"an argument of function '{call.folded}' is {text[:40]}, at character {call.name.start + 1}"
        raise BadValue(message, f"a whole number up to {most:,}, written in the text")


def _check_error(call: FunctionCall, argument: Sequence[Word]) -> None:
    text = "".join(word.text for word in argument)
    if not re.fullmatch(r"\d*\.?\d+", text) or float(text) < LEAST_ERROR:
        message = f"an argument of function '{call.folded}' is {text[:40]}, at character {call.name.start + 1}"
        raise BadValue(message, f"a number from {LEAST_ERROR}, written in the text")


def _check_format(call: FunctionCall, argument: Sequence[Word]) -> None:
    if not _is_text(argument):
        raise _not_written(call.name, "its format")
    for conversion in _WIDTHS.findall(value_of(argument[0])):
        if any(int(number[:12]) > MAX_WIDTH for number in re.findall(r"\d+", conversion)):
            message = f"a format of function '{call.folded}' has {conversion[:40]}, at character {call.name.start + 1}"
            raise BadValue(message, f"widths, precisions and places up to {MAX_WIDTH:,}")


def _check_pattern(call: FunctionCall, argument: Sequence[Word]) -> None:
    if not _is_text(argument):
        raise _not_written(call.name, "its regular expression")
    check_pattern(value_of(argument[0]))


def _check_like(call: FunctionCall, argument: Sequence[Word]) -> None:
    if not _is_text(argument):
        raise _not_written(call.name, "its pattern")
    check_wildcards(value_of(argument[0]))


_CHECKS: dict[BoundKind, Callable[[FunctionCall, Sequence[Word]], None]] = {
    BoundKind.WRITTEN_DIGITS: _check_digits,
    BoundKind.WRITTEN_COUNT: _check_count,
    BoundKind.WRITTEN_ERROR: _check_error,
    BoundKind.WRITTEN_FORMAT: _check_format,
    BoundKind.PATTERN: _check_pattern,
    BoundKind.PATTERNS: _check_pattern,
    BoundKind.WILDCARDS: _check_like,
}


def _is_text(argument: Sequence[Word]) -> bool:
    return len(argument) == 1 and argument[0].kind is WordKind.TEXT


def _not_written(word: Word, what: str) -> BadValue:
    remedy = "a text in quotes; to compare with a column, use contains, startswith, endswith or split_part"
    return BadValue(f"{what} of '{word.folded}' is computed, at character {word.start + 1}", remedy)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def value_of(word: Word) -> str:
    """The value of a text between quotes, as Spark reads it.

    >>> value_of(words_of("'a\\\\\\\\d+'")[0]), value_of(words_of("r'a\\\\d+'")[0]), value_of(words_of("'it''s'")[0])
    ('a\\\\d+', 'a\\\\d+', "it's")
    """
    if word.text[0] in "rR":
        return word.text[2:-1]
    inside = word.text[1:-1].replace(word.text[0] * 2, word.text[0])
    return "".join(_unescaped(inside))


def _unescaped(text: str) -> Iterator[str]:
    for match in re.finditer(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\([0-3][0-7]{2})|\\(.)|(.)", text, re.DOTALL):
        if match[1] or match[2]:
            yield chr(min(int(match[1] or match[2], 16), 0x10FFFF))
        elif match[3]:
            yield chr(int(match[3], 8))
        else:
            yield match[5] if match[4] is None else _ESCAPES.get(match[4], match[4])
