"""Aggregate expressions in three parts: SQL over rows, named aggregates over columns, SQL over their results.

``max(a + 1) - min(a)`` is ``a + 1`` and ``a``, of which ``max`` and ``min`` are taken, and ``x - y`` of these. What is
inside and outside stays text as it was written, between the words that Spark's own lexer separates, so that Spark
gives it its meaning; only the names of aggregates and their options are understood here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.errors import InputError, shorten
from headgate.model.sql.calls import FunctionCall, calls_of
from headgate.model.sql.lexer import Word, words_of

__all__ = ["AGGREGATES", "AggregateCall", "Split", "split"]

_ALIASES = {
    "mean": "avg", "std": "stddev_samp", "stddev": "stddev_samp", "variance": "var_samp", "every": "min",
    "bool_and": "min", "any": "max", "some": "max", "bool_or": "max", "first_value": "first", "last_value": "last",
    "any_value": "first", "percentile_approx": "approx_percentile", "array_agg": "collect_list",
}  # fmt: skip

_ONE = "sum avg min max first last stddev_samp stddev_pop var_samp var_pop skewness kurtosis collect_list collect_set"
_COUNTS = dict.fromkeys((*_ONE.split(), "count_if", "median", "mode"), (1, 1))
_COUNTS |= {"count": (0, 100), "first": (1, 2), "last": (1, 2), "approx_count_distinct": (1, 2)}
_COUNTS |= dict.fromkeys(("max_by", "min_by", "corr", "covar_pop", "covar_samp", "percentile"), (2, 2))
_COUNTS |= {"approx_percentile": (2, 3)}

AGGREGATES = frozenset(_COUNTS) | frozenset(_ALIASES)
"""Aggregates that can be computed row by row, merged and finished."""

_BOOLEAN = {"every", "bool_and", "any", "some", "bool_or"}
_OTHERS = """bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg collect_union histogram_numeric
listagg string_agg percentile_cont percentile_disc product regr_avgx regr_avgy regr_count regr_intercept regr_r2
regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg try_avg try_sum vector_avg vector_sum grouping
grouping_id"""
_NOT_STREAMING = frozenset(_OTHERS.split())
_DISTINCT = {"count", "sum", "avg", "min", "max", "collect_list", "collect_set"}
_ORDERED = {"first", "last"}


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of columns: the numbers of its arguments, and what it is to do."""

    function: str
    arguments: tuple[int, ...]
    constants: tuple[float | bool | tuple[float, ...], ...] = ()
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """Expressions, split; equal arguments and equal calls are there once."""

    arguments: tuple[str, ...]
    """SQL over the input's rows."""

    calls: tuple[AggregateCall, ...]
    outer: tuple[tuple[str, str], ...]
    """The name of each column, and SQL over the calls' results, which are named by :func:`result_name`."""


def result_name(place: int) -> str:
    """The column of the result of a call."""
    return f"__agg_{place}"


def split(expressions: Mapping[str, str]) -> Split:
    """Split the expressions of an aggregation.

    >>> parts = split({"span": "max(a + 1) - min(a)", "n": "count(*)", "most": "round(max(a + 1))"})
    >>> parts.arguments, [call.function for call in parts.calls]
    (('a + 1', 'a'), ['max', 'min', 'count'])
    >>> parts.outer
    (('span', '`__agg_0` - `__agg_1`'), ('n', '`__agg_2`'), ('most', 'round(`__agg_0`)'))
    """
    arguments: dict[str, int] = {}
    calls: dict[AggregateCall, int] = {}
    outer = []
    for name, text in expressions.items():
        pieces, position = [], 0
        words = words_of(text)
        for call in calls_of(text):
            if call.name.start < position or not _is_aggregate(call, words):
                continue
            end, condition = _filter(text, words, call)
            made, field = _understood(text, call, condition, arguments)
            place = calls.setdefault(made, len(calls))
            pieces += [text[position : call.name.start], f"`{result_name(place)}`{field}"]
            position = end
        if not position:
            raise _refused(f"{shorten(text)} is no aggregate", "an aggregate such as avg(x), max(x) - min(x), count(*)")
        outer.append((name, "".join([*pieces, text[position:]])))
    return Split(tuple(arguments), tuple(calls), tuple(outer))


def _refused(message: str, remedy: str) -> InputError:
    return InputError("TASK_REFUSED", f"{message}; take {remedy}")


def _before(words: Iterable[Word], start: int) -> str:
    last = ""
    for word in words:
        if word.start >= start:
            break
        last = word.folded
    return last


def _is_aggregate(call: FunctionCall, words: tuple[Word, ...]) -> bool:
    if call.folded in ("any", "some") and _before(words, call.name.start) in ("like", "ilike"):
        return False  # of patterns
    if call.folded in _NOT_STREAMING:
        raise _refused(
            f"aggregate '{call.folded}' cannot be continued from row to row", f"one of {', '.join(_names())}"
        )
    return call.folded in AGGREGATES


def _names() -> list[str]:
    return sorted(AGGREGATES)


def _filter(text: str, words: tuple[Word, ...], call: FunctionCall) -> tuple[int, str | None]:
    """Where an aggregate ends with what follows it, and its FILTER condition."""
    after = [word for word in words if word.start >= call.end]
    if len(after) > 1 and after[0].folded in ("ignore", "respect") and after[1].folded == "nulls":
        return _filter_after(text, words, after[1].end)
    if len(after) > 1 and after[0].folded == "over" and after[1].text == "(":
        raise _refused(f"'{call.folded}' is used over rows, not over groups", "it without OVER")
    return _filter_after(text, words, call.end)


def _filter_after(text: str, words: tuple[Word, ...], end: int) -> tuple[int, str | None]:
    after = [word for word in words if word.start >= end]
    if len(after) < 3 or after[0].folded != "filter" or after[1].text != "(" or after[2].folded != "where":
        return end, None
    last = next(call.end for call in calls_of(text) if call.name.start == after[0].start)
    return last, text[after[2].end : last - 1].strip()


def _understood(
    text: str, call: FunctionCall, condition: str | None, places: dict[str, int]
) -> tuple[AggregateCall, str]:
    """The call, and the field of its result that counts (``first`` with a filter takes rows as structs)."""
    function = _ALIASES.get(call.folded, call.folded)
    texts = [text[words[0].start : words[-1].end] if words else "" for words in call.arguments]
    distinct = bool(call.arguments) and bool(call.arguments[0]) and call.arguments[0][0].folded == "distinct"
    if distinct:
        texts[0] = text[call.arguments[0][0].end : call.arguments[0][-1].end].strip()
        if function not in _DISTINCT:
            raise _refused(f"'{call.folded}' of distinct values is not computed", "it without DISTINCT")
    least, most = _COUNTS[function]
    if not least <= len(texts) <= most:
        raise _refused(f"'{call.folded}' with {len(texts)} arguments", f"{least}" + (f" to {most}" * (most > least)))
    nested = next((other for other in calls_of(text) if _within(other, call) and other.folded in AGGREGATES), None)
    if nested is not None and nested.folded not in _BOOLEAN:
        raise _refused(f"'{nested.folded}' within '{call.folded}': an aggregate of an aggregate", "two tasks")
    constants = _constants(call, function, texts)
    field = ""
    if function == "count":
        function, texts, distinct = _count(call, texts, distinct)
    elif function == "count_if":
        function, texts = "count", [f"if({texts[0]}, true, null)"]
    elif function in _ORDERED:
        constants = (constants[0] if constants else _ignores_nulls(text, call),)
        if condition is not None and not constants[0]:
            texts, field, constants = [f"struct({texts[0]} as value)"], ".value", (True,)
    if condition is not None:
        texts = [f"if({condition}, {text}, null)" for text in texts] or [f"if({condition}, true, null)"]
    if distinct and function == "collect_list":
        function = "collect_set"
    distinct = distinct and function in ("count", "sum", "avg")
    arguments = tuple(places.setdefault(text, len(places)) for text in texts)
    return AggregateCall(function, arguments, constants, distinct), field


def _within(inner: FunctionCall, outer: FunctionCall) -> bool:
    return outer.name.start < inner.name.start and inner.end <= outer.end


def _count(call: FunctionCall, texts: list[str], distinct: bool) -> tuple[str, list[str], bool]:
    """``count``: of rows (no argument), of rows in which all arguments have a value, or of different ones of these."""
    if texts in (["*"], ["1"]) and not distinct:
        return "count", [], False
    if not texts or "*" in texts:
        raise _refused(f"'{call.folded}' of what", "count(*), count(x) or count(distinct x)")
    if len(texts) == 1:
        return "count", texts, distinct
    known = " and ".join(f"({text}) is not null" for text in texts)
    value = f"struct({', '.join(texts)})" if distinct else "true"
    return "count", [f"if({known}, {value}, null)"], distinct


def _ignores_nulls(text: str, call: FunctionCall) -> bool:
    return re.match(r"\s*ignore\s+nulls\b", text[call.end :], re.IGNORECASE) is not None


def _constants(call: FunctionCall, function: str, texts: list[str]) -> tuple[float | bool | tuple[float, ...], ...]:
    """Take the arguments off that are no columns."""
    if function == "median":
        return (0.5,)
    if function not in _ORDERED and function not in ("percentile", "approx_percentile", "approx_count_distinct"):
        return ()
    taken = texts[1:]
    del texts[1:]
    return tuple(_constant(call, text) for text in taken)


def _constant(call: FunctionCall, text: str) -> float | bool | tuple[float, ...]:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    listed = re.fullmatch(r"array\s*\((.*)\)", text.strip(), re.IGNORECASE | re.DOTALL)
    try:
        return tuple(map(float, listed[1].split(","))) if listed else float(text.strip().rstrip("dDfF"))
    except ValueError:
        message = f"an argument of '{call.folded}' is {shorten(text)}"
        raise _refused(message, "a number, or array(...) of numbers, written in the text") from None
