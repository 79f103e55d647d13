"""SQL expressions in a normal form: only what is total and deterministic, so that it may be evaluated elsewhere.

A task that is moved behind another sees other rows than its author thought of. Nothing may then go wrong that would not
have gone wrong before, and nothing may come out differently. So an expression has a normal form only when it

- reads plain columns of known type,
- gives the same result for the same row (no random numbers, no clock),
- never raises for any row. Spark's ANSI mode, its default, raises for a cast that fails, a division by zero, an integer
  that overflows; also for the casts that it adds itself where a text is compared with a number.

All others are left as they are. Terms are nested tuples: ``("col", name, kind)``, ``("lit", kind, text)``, and
``(operation, term...)``; equal terms compute the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from headgate.model.expression import parsed_expression
from headgate.tasks.sql_text import quoted

__all__ = [
    "NotNormal",
    "Term",
    "column",
    "conjuncts",
    "kind",
    "kind_of_type",
    "normal",
    "normal_tree",
    "rendered",
    "try_cast",
]

Term = tuple[Any, ...]

NUMBERS = ("int", "decimal", "double")
_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "int"),
    **dict.fromkeys(("float", "double"), "double"),
    "string": "string",
    "boolean": "boolean",
}
_COMPARISONS = {"EQ": "=", "NEQ": "<>", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<=", "NullSafeEQ": "<=>"}
_FLIPPED = {"=": "=", "<>": "<>", "<=>": "<=>", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_NEGATED = {"=": "<>", "<>": "=", ">": "<=", ">=": "<", "<": ">=", "<=": ">"}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
_TEXTS = {"Upper": "upper", "Lower": "lower", "Trim": "trim", "Length": "length"}
_ALLOWED = {
    "Upper": {"this"},
    "Lower": {"this"},
    "Trim": {"this"},
    "Length": {"this", "binary", "encoding"},
    "Like": {"this", "expression", "negate"},
    "Column": {"this"},
}


class NotNormal(Exception):
    """An expression that has no normal form; it is left as its author wrote it."""


def kind_of_type(sql_type: str | None) -> str:
    """The kind of a Spark SQL type, as far as expressions care; ``other`` for what may only be passed on.

    >>> kind_of_type("bigint"), kind_of_type("decimal(10,2)"), kind_of_type("array<int>"), kind_of_type(None)
    ('int', 'decimal', 'other', 'other')
    """
    if sql_type is None:
        return "other"
    return "decimal" if sql_type.startswith("decimal") else _KINDS.get(sql_type, "other")


def column(name: str, sql_type: str | None) -> Term:
    """A column of the base stream."""
    return ("col", name, kind_of_type(sql_type))


def try_cast(term: Term, sql_type: str) -> Term:
    """What a task of type ``cast`` does: what cannot be turned becomes null."""
    return ("try_cast", term, sql_type)


def normal(text: str, columns: Mapping[str, Term]) -> Term:
    """Bring an expression into normal form; ``columns`` are the terms that its columns stand for, by folded name.

    >>> v = {"v": column("v", "double")}
    >>> normal("3 < V", v) == normal("not (v <= 3.0)", v)
    True
    >>> normal("1 / v > 2", v)
    Traceback (most recent call last):
        ...
    headgate.sharing.semantic.term.NotNormal: a division that may be by zero
    """
    return normal_tree(_tree(text), columns)


@lru_cache(maxsize=16_384)
def _tree(text: str) -> Any:
    return parsed_expression(text)


def conjuncts(term: Term) -> tuple[Term, ...]:
    """The terms that must all be true for a predicate to be; rows for which it is null do not pass either way."""
    parts = term[1:] if term[0] == "and" else (term,)
    return tuple(dict.fromkeys(part for part in parts if part != ("lit", "boolean", "true")))


def kind(term: Term) -> str:
    """The kind of a term's values."""
    head = term[0]
    if head == "col":
        return str(term[2])
    if head == "lit":
        return str(term[1])
    if head == "try_cast":
        return kind_of_type(term[2])
    if head in _ARITHMETIC.values() or head == "neg":
        return "double"
    if head in ("upper", "lower", "trim"):
        return "string"
    if head == "length":
        return "int"
    return kind(term[1]) if head == "coalesce" else "boolean"


def normal_tree(tree: Any, columns: Mapping[str, Term]) -> Term:
    """The same for an expression that is parsed already."""
    name = type(tree).__name__
    unknown = {key for key, value in tree.args.items() if value} - _ALLOWED.get(name, set(tree.args))
    if unknown:
        raise NotNormal(f"{name} with {', '.join(sorted(unknown))}")
    if name == "Paren":
        return normal_tree(tree.this, columns)
    if name == "Column":
        term = columns.get(tree.name.casefold())
        if term is None:
            raise NotNormal(f"column {tree.name}")
        return term
    if name in ("Literal", "Boolean", "Null"):
        return _literal(tree)
    if name in _COMPARISONS:
        return _comparison(_COMPARISONS[name], normal_tree(tree.this, columns), normal_tree(tree.expression, columns))
    if name == "Between" and not tree.args.get("symmetric"):
        subject = normal_tree(tree.this, columns)
        low, high = normal_tree(tree.args["low"], columns), normal_tree(tree.args["high"], columns)
        return _joined("and", [_comparison(">=", subject, low), _comparison("<=", subject, high)])
    if name in ("And", "Or"):
        return _joined(name.lower(), [_truth(normal_tree(side, columns)) for side in (tree.this, tree.expression)])
    if name == "Not":
        return _negated(_truth(normal_tree(tree.this, columns)))
    if name == "Is" and type(tree.expression).__name__ == "Null":
        return ("is null", normal_tree(tree.this, columns))
    if name == "In":
        return _membership(tree, columns)
    if name in _ARITHMETIC:
        return _arithmetic(_ARITHMETIC[name], normal_tree(tree.this, columns), normal_tree(tree.expression, columns))
    if name == "Neg":
        return _minus(normal_tree(tree.this, columns))
    if name in _TEXTS:
        return (_TEXTS[name], _of("string", normal_tree(tree.this, columns)))
    if name == "Like":
        return _like(tree, columns)
    if name == "Coalesce":
        terms = [normal_tree(part, columns) for part in (tree.this, *tree.expressions)]
        if len({kind(term) for term in terms}) > 1 or kind(terms[0]) == "other":
            raise NotNormal("coalesce of several kinds")
        return ("coalesce", *terms)
    raise NotNormal(name)


def _literal(tree: Any) -> Term:
    name = type(tree).__name__
    if name == "Null":
        return ("lit", "null", "null")
    if name == "Boolean":
        return ("lit", "boolean", "true" if tree.this else "false")
    if tree.is_string:
        return ("lit", "string", tree.this)
    text = str(tree.this)
    if "e" in text.lower():
        return ("lit", "double", text)
    return ("lit", "decimal" if "." in text else "int", text)


def _comparison(operation: str, left: Term, right: Term) -> Term:
    kinds = {kind(left), kind(right)}
    alike = kinds <= set(NUMBERS) or kinds == {"string"} or (kinds == {"boolean"} and operation in ("=", "<>", "<=>"))
    if not alike:
        raise NotNormal(f"a comparison of {' and '.join(sorted(kinds))}")
    if left[0] == "lit" or (right[0] != "lit" and repr(right) < repr(left)):
        operation, left, right = _FLIPPED[operation], right, left
    return (operation, left, _number(right, kind(left)) if right[0] == "lit" else right)


def _number(literal: Term, beside: str) -> Term:
    """A number as it counts in a comparison: 3 and 3.0 are the same."""
    if literal[1] not in NUMBERS:
        return literal
    if literal[1] == "double" and beside != "double":
        raise NotNormal("a number with an exponent beside exact ones")
    try:
        value = Decimal(literal[2])
    except InvalidOperation:
        raise NotNormal("a number") from None
    if value.adjusted() > 300 or value.adjusted() < -300 or len(value.as_tuple().digits) > 15:
        raise NotNormal("a number out of all proportion")
    text = format(value.normalize(), "f")
    return ("lit", "decimal" if "." in text else "int", "0" if text == "-0" else text)


def _truth(term: Term) -> Term:
    if term == ("lit", "null", "null"):
        return term
    return _of("boolean", term)


def _of(wanted: str, term: Term) -> Term:
    if kind(term) != wanted:
        raise NotNormal(f"{kind(term)} where {wanted} is wanted")
    return term


def _joined(operation: str, terms: Iterable[Term]) -> Term:
    """And and or in any order are the same; nested ones become one."""
    parts = [part for term in terms for part in (term[1:] if term[0] == operation else (term,))]
    ordered = sorted(set(parts), key=repr) if operation == "or" else list(dict.fromkeys(parts))
    return ordered[0] if len(ordered) == 1 else (operation, *ordered)


def _negated(term: Term) -> Term:
    """Not, pushed inwards; every step holds in SQL's three-valued logic."""
    head = term[0]
    if head == "not":
        return term[1]  # type: ignore[no-any-return]
    if head in _NEGATED:
        return (_NEGATED[head], *term[1:])
    if head in ("and", "or"):
        return _joined("or" if head == "and" else "and", [_negated(part) for part in term[1:]])
    return ("not", term)


def _membership(tree: Any, columns: Mapping[str, Term]) -> Term:
    if tree.args.get("query") or tree.args.get("unnest") or tree.args.get("field"):
        raise NotNormal("in a query")
    subject = normal_tree(tree.this, columns)
    tests = [_comparison("=", subject, normal_tree(item, columns)) for item in tree.expressions]
    if subject[0] == "lit" or any(test[2][0] != "lit" or test[1] != subject for test in tests):
        raise NotNormal("in something other than values")
    # Not "or" of equalities, although it is the same: a long list stays one test.
    values = sorted({test[2] for test in tests})
    return tests[0] if len(values) == 1 else ("in", subject, *values)


def _arithmetic(operation: str, left: Term, right: Term) -> Term:
    kinds = {kind(left), kind(right)}
    if not kinds <= set(NUMBERS) or "double" not in kinds:
        raise NotNormal("arithmetic that may overflow")
    if operation == "/" and (right[0] != "lit" or not Decimal(right[2])):
        raise NotNormal("a division that may be by zero")
    if operation in ("+", "*") and repr(right) < repr(left):
        left, right = right, left
    return (operation, left, right)


def _minus(term: Term) -> Term:
    if term[0] == "lit" and term[1] in NUMBERS:
        return ("lit", term[1], term[2].removeprefix("-") if term[2].startswith("-") else f"-{term[2]}")
    return ("neg", _of("double", term))


def _like(tree: Any, columns: Mapping[str, Term]) -> Term:
    pattern = normal_tree(tree.expression, columns)
    if tree.args.get("negate") or pattern[:2] != ("lit", "string") or "\\" in pattern[2]:
        raise NotNormal("like with a pattern that is not plain")
    return ("like", _of("string", normal_tree(tree.this, columns)), pattern)


def rendered(term: Term, names: Mapping[Term, str]) -> str:
    """A term as Spark SQL over a stream; ``names`` are the terms that its columns hold."""
    if term in names:
        return quoted(names[term])
    head, *parts = term
    if head == "lit":
        return f"'{_escaped(parts[1])}'" if parts[0] == "string" else str(parts[1])
    if head == "col":
        raise NotNormal(f"column {parts[0]} is not there")
    if head == "try_cast":
        return f"try_cast({rendered(parts[0], names)} as {parts[1]})"
    texts = [rendered(part, names) for part in parts]
    if head == "is null":
        return f"({texts[0]} is null)"
    if head == "in":
        return f"({texts[0]} in ({', '.join(texts[1:])}))"
    if head == "not":
        return f"(not {texts[0]})"
    if head == "neg":
        return f"(- {texts[0]})"
    if head in ("upper", "lower", "trim", "length", "coalesce"):
        return f"{head}({', '.join(texts)})"
    return "(" + f" {head} ".join(texts) + ")"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
