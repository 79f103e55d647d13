"""Whether a predicate that is true makes another true.

Only truth matters: a filter drops a row for which its predicate is false and one for which it is null. Values of a
column are totally ordered in Spark (NaN is greater than all numbers, and equal to itself), so bounds may be compared.
The rules are few and each is sound; where none applies the answer is no.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from headgate.sharing.semantic.term import NUMBERS, Term

__all__ = ["all_implied", "implied"]


def all_implied(given: Iterable[Term], wanted: Iterable[Term]) -> bool:
    """Whether every wanted conjunct is true wherever all the given ones are."""
    known = tuple(given)
    return all(implied(known, term) for term in wanted)


def implied(given: Iterable[Term], wanted: Term) -> bool:
    """Whether a conjunct is true wherever all the given ones are.

    >>> v = ("col", "v", "double")
    >>> implied([(">", v, ("lit", "int", "5"))], (">=", v, ("lit", "decimal", "4.5")))
    True
    >>> implied([(">", v, ("lit", "int", "5"))], (">", v, ("lit", "int", "6")))
    False
    """
    return any(_implies(term, wanted) for term in given)


def _implies(given: Term, wanted: Term) -> bool:
    if given == wanted:
        return True
    if given[0] == "or":
        return all(_implies(arm, wanted) for arm in given[1:])
    if wanted[0] == "and":
        return all(_implies(given, part) for part in wanted[1:])
    if given[0] == "and" and any(_implies(part, wanted) for part in given[1:]):
        return True
    if wanted[0] == "or":
        return any(_implies(given, arm) for arm in wanted[1:])
    if wanted == ("not", ("is null", given[1])):
        return given[0] in ("=", "<>", "<", "<=", ">", ">=", "in", "like")
    if len(given) > 1 and len(wanted) > 1 and given[1] == wanted[1]:
        return _bounds(given, wanted)
    return False


def _bounds(given: Term, wanted: Term) -> bool:
    """The same subject tested against values twice."""
    if given[0] not in _TESTS or wanted[0] not in _TESTS or any(part[0] != "lit" for part in (*given[2:], *wanted[2:])):
        return False
    if given[0] in ("=", "in"):
        return all(_satisfies(value, wanted) for value in given[2:])
    if wanted[0] not in ("<", "<=", ">", ">=", "<>"):
        return False
    operation, bound, other = given[0], given[2], wanted[2]
    if operation in (">", ">="):
        reached = _at_most(other, bound) if operation == ">" or wanted[0] == ">=" else _below(other, bound)
        return wanted[0] in (">", ">=", "<>") and reached
    if operation in ("<", "<="):
        reached = _at_most(bound, other) if operation == "<" or wanted[0] == "<=" else _below(bound, other)
        return wanted[0] in ("<", "<=", "<>") and reached
    return False


_TESTS = ("=", "in", "<>", "<", "<=", ">", ">=")


def _satisfies(value: Term, wanted: Term) -> bool:
    operation, bounds = wanted[0], wanted[2:]
    if operation in ("=", "in"):
        return value in bounds
    bound = bounds[0]
    return {
        "<>": _below(value, bound) or _below(bound, value),
        "<": _below(value, bound),
        "<=": _at_most(value, bound),
        ">": _below(bound, value),
        ">=": _at_most(bound, value),
    }[operation]


def _below(one: Term, other: Term) -> bool:
    """Whether a value is less, also after both were turned into doubles, which may make near ones equal."""
    if one[1] in NUMBERS and other[1] in NUMBERS:
        small, large = _value(one[2]), _value(other[2])
        return small < large and float(small) < float(large)
    return bool(one[1] == other[1] == "string" and one[2] < other[2])


@lru_cache(maxsize=65_536)
def _value(number: str) -> Fraction:
    return Fraction(number)


def _at_most(one: Term, other: Term) -> bool:
    if one[1] in NUMBERS and other[1] in NUMBERS:
        return _value(one[2]) <= _value(other[2])
    return bool(one[1] == other[1] == "string" and one[2] <= other[2])
