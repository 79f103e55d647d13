"""Bounds for functions whose results would otherwise be as large as a row says, put into the text that Spark runs.

A row that is beyond a bound fails as any row does that raises. In a text without such functions nothing is changed.
"""

from __future__ import annotations

from functools import lru_cache

from headgate.errors import BadValue
from headgate.model.sql.calls import FunctionCall, calls_of
from headgate.model.sql.catalogue import BoundKind, function_catalogue
from headgate.model.sql.permitted import MAX_DIGITS

__all__ = ["MAX_CHARACTERS", "MAX_ELEMENTS", "MAX_WITHIN", "MAX_WORK", "bounded"]

MAX_CHARACTERS = 1_000_000
"""How long a text may become by repeating and padding."""

MAX_ELEMENTS = 100_000
"""How many elements an array may get by counting and repeating."""

MAX_WITHIN = 1_000
"""The same for both within another call: a lambda function would multiply it by the elements of its array."""

MAX_WORK = 100_000_000
"""The product of the lengths of two texts that are compared character by character."""

MAX_TEXT = 30_000
"""Characters that a text may have with its bounds: those of calls within calls repeat their arguments."""

RUNTIME = (BoundKind.PRODUCT, BoundKind.COUNT, BoundKind.ELEMENTS, BoundKind.SEQUENCE, BoundKind.WORK, BoundKind.DIGITS)
_WHOLE = "('tinyint','smallint','int','bigint')"


@lru_cache(maxsize=65_536)
def bounded(text: str) -> str:
    """A SQL text in which each call of such a function checks what it is asked for.

    >>> bounded("upper(city)")
    'upper(city)'
    >>> bounded("space(n)")
    "space(if((n) > 1000000, raise_error('space: more than 1,000,000 characters'), n))"
    """
    known = function_catalogue().bounded
    calls = [call for call in calls_of(text) if call.folded in known and known[call.folded].kind in RUNTIME]
    if not calls:
        return text
    made = _rewritten(text, 0, len(text), calls)
    if len(made) > MAX_TEXT:
        names = ", ".join(sorted({call.folded for call in calls}))
        raise BadValue(f"too many calls within calls of {names}", "fewer in one expression; use several columns")
    return made


def _rewritten(text: str, start: int, end: int, calls: list[FunctionCall]) -> str:
    """Part of a text with its calls bounded, the outer ones around the inner ones."""
    pieces, position = [], start
    for call in calls:
        if call.name.start < position or call.end > end:
            continue  # within one before, or outside of the part
        arguments = [_rewritten(text, *_span(call, place), calls) for place in range(len(call.arguments))]
        pieces += [text[position : call.name.start], f"{call.folded}({', '.join(_bounded(call, arguments))})"]
        position = call.end
    return "".join([*pieces, text[position:end]])


def _span(call: FunctionCall, place: int) -> tuple[int, int]:
    words = call.arguments[place]
    return (words[0].start, words[-1].end) if words else (call.end, call.end)


def _bounded(call: FunctionCall, arguments: list[str]) -> list[str]:
    bound = function_catalogue().bounded[call.folded]
    if bound.kind is BoundKind.SEQUENCE:
        return _bounded_sequence(call, arguments)
    if max(bound.arguments) >= len(arguments):
        return arguments  # Spark says what is missing
    made = list(arguments)
    last = bound.arguments[-1]
    made[last] = _checked(call, arguments[last], *_excess(call, bound.kind, [arguments[at] for at in bound.arguments]))
    return made


def _excess(call: FunctionCall, kind: BoundKind, values: list[str]) -> tuple[str, str]:
    """When a call asks for too much, and for what."""
    within = MAX_WITHIN if _is_multiplied(call) else None
    if kind is BoundKind.PRODUCT:
        most = within or MAX_CHARACTERS
        return f"cast({values[1]} as bigint) * octet_length({values[0]}) > {most}", f"{most:,} characters"
    if kind is BoundKind.WORK:
        most = MAX_WORK
        return (
            f"cast(octet_length({values[0]}) as bigint) * octet_length({values[1]}) > {most}",
            f"{most:,} comparisons",
        )
    if kind is BoundKind.DIGITS:
        return f"try_cast({values[0]} as int) > {MAX_DIGITS}", f"{MAX_DIGITS} digits"
    if kind is BoundKind.ELEMENTS:
        most = within or MAX_ELEMENTS
        return f"abs(cast({values[0]} as bigint)) > {most}", f"{most:,} elements"
    most = within or MAX_CHARACTERS
    return f"({values[0]}) > {most}", f"{most:,} characters"


def _is_multiplied(call: FunctionCall) -> bool:
    """Whether what it makes is made, or copied, for each element of something."""
    known = function_catalogue().bounded
    return call.in_lambda or any(name in known and known[name].kind in RUNTIME for name in call.within)


def _bounded_sequence(call: FunctionCall, arguments: list[str]) -> list[str]:
    """From first to last: of numbers, dates or times, which only Spark knows, by a step or by one of them."""
    if len(arguments) not in (2, 3):
        return arguments
    first, last = arguments[:2]
    most = MAX_WITHIN if _is_multiplied(call) else MAX_ELEMENTS
    number = "try_cast(cast({} as string) as double)".format
    second = "cast(cast({} as timestamp) as double)".format
    if len(arguments) == 3:
        step = f"({first} + {arguments[2]})"
        steps = [f"abs({of(step)} - {of(first)})" for of in (number, second)]
    else:
        steps = ["1", "86400"]
    excess = [f"abs({of(last)} - {of(first)}) > {most}D * {by}" for of, by in zip((number, second), steps, strict=True)]
    test = f"if(typeof({first}) in {_WHOLE}, {excess[0]}, {excess[1]})"
    return [first, _checked(call, last, test, f"{most:,} elements"), *arguments[2:]]


def _checked(call: FunctionCall, value: str, excess: str, most: str) -> str:
    return f"if({excess}, raise_error('{call.folded}: more than {most}'), {value})"
