"""How many times an expression may repeat what it reads: a text that is put together with itself, again and again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from headgate.model.expression import parsed_expression

__all__ = ["MOST_GROWTH", "growth_of"]

MOST_GROWTH = 1_000
"""Memory is Spark's, and has no other bound: forty doublings take all of it, row by row."""

_JOINING_TEXT = """
Concat ConcatWs DPipe Array ArrayConcat Struct Format Map VarMap MapFromEntries MapConcat Flatten ArrayAppend
ArrayPrepend ArrayInsert StarMap ToMap named_struct map map_concat map_from_arrays array_union array_append
array_prepend arrays_zip printf format_string elt concat
"""
JOINING = frozenset(_JOINING_TEXT.split())
"""What puts its arguments together, by sqlglot's class or, where that has none, by the function's name."""

REPLACING = ("Replace", "RegexpReplace", "Overlay")


def growth_of(expression: str, before: Mapping[str, float]) -> float:
    """The size of what an expression makes, over that of the columns; ``before`` are those of columns that grew.

    >>> growth_of("concat(k, upper(k), 'x')", {}), growth_of("k || k", {"k": 512.0}), growth_of("a * a + a", {"a": 1.0})
    (2.0, 1024.0, 1.0)
    >>> growth_of("aggregate(xs, k, (a, x) -> concat(a, x))", {}), growth_of("aggregate(xs, k, (a, x) -> a || a)", {})
    (2.0, inf)
    """
    return _growth(_parsed(expression), before, 1.0)


_parsed = lru_cache(maxsize=4_096)(parsed_expression)


def _growth(node: Any, before: Mapping[str, float], unknown: float) -> float:
    kind = type(node).__name__
    if kind == "Identifier":
        return before.get(node.name.casefold(), unknown)
    if kind == "Column":
        return before.get(node.parts[0].name.casefold(), unknown)
    inner = [_growth(one, before, unknown) for one in node.iter_expressions()]
    if kind == "Reduce":
        return max(max(inner, default=0.0), _repeated(node))
    if kind in REPLACING:
        return math.prod((inner[0], *(1.0 + one for one in inner[1:])))
    if (node.name.casefold() if kind == "Anonymous" else kind) in JOINING:
        return sum(inner)
    return max(inner, default=0.0)


def _repeated(reduce: Any) -> float:
    """Without end, if what is gathered is put together with itself in each step; else nothing of its own."""
    step = reduce.args.get("merge")
    if step is None or not step.expressions:
        return 0.0
    gathered = step.expressions[0].name.casefold()
    return math.inf if _growth(step.this, {gathered: 1.0}, 0.0) > 1.0 else 0.0
