"""A regular expression as an automaton: its places, what each reads, and in how many ways one follows another."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

__all__ = ["Automaton", "NotAnalysed", "automata_of"]

# Imported by name: whether mypy knows these modules depends on what is in its cache.
names: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

MAX_PLACES = 250
MAX_COPIES = 8
"""Up to so many repetitions are written out; more are a loop."""

_GENERIC = "aZ0_ \n\t-.,:/é中"
"""Characters for all that a pattern does not name."""


class NotAnalysed(ValueError):
    """The pattern has something that cannot be analysed."""


@dataclass(slots=True)
class Automaton:
    """Glushkov's automaton of a pattern."""

    reads: list[frozenset[str]] = field(default_factory=list)
    """What each place reads, as far as it differs from what others read."""

    follow: dict[int, Counter[int]] = field(default_factory=dict)
    """The places after each, and in how many ways (2 stands for any more)."""


@dataclass(slots=True)
class _Part:
    """A part of a pattern: in how many ways it reads nothing, and where it begins and ends."""

    empty: int = 0
    first: Counter[int] = field(default_factory=Counter)
    last: Counter[int] = field(default_factory=Counter)


def automata_of(pattern: str) -> list[Automaton]:
    """The automaton of a pattern, and those of what it looks ahead and back at."""
    if len(pattern) > 1_000:
        raise NotAnalysed("it has more than 1,000 characters")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = parser.parse(_for_python(pattern))
    alphabet = {*_GENERIC, *(char for char in pattern if char.isprintable())}
    alphabet |= {chr(ord(char) + 1) for char in pattern} | {chr(max(ord(char) - 1, 0)) for char in pattern}
    alphabet |= {char.swapcase() for char in alphabet if len(char.swapcase()) == 1}
    builder = _Builder(frozenset(alphabet), bool(tree.state.flags & re.IGNORECASE))
    builder.part_of(tree)
    automata, beside = [builder.automaton], builder.beside
    while beside:
        inner = _Builder(builder.alphabet, builder.folds)
        inner.part_of(beside.pop())
        automata.append(inner.automaton)
        beside += inner.beside
    return automata


def _for_python(pattern: str) -> str:
    """A pattern of Java's as one of Python's that reads at least as much.

    >>> _for_python(r"(?<name>\\p{L}+)\\z")
    '(?P<name>.+)\\\\Z'
    """
    pattern = re.sub(r"\\Q(.*?)(?:\\E|$)", lambda match: re.escape(match[1]), pattern, flags=re.DOTALL)
    pattern = re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern)
    if re.search(r"\[[^\]]*\\[pP]", pattern) or "&&" in pattern:
        raise NotAnalysed("it has classes within classes")
    pattern = re.sub(r"\\[pP](\{[^}]*\}|\w)|\\[hHvVRX]", ".", pattern)
    return re.sub(r"\\z", r"\\Z", pattern)


class _Builder:
    def __init__(self, alphabet: frozenset[str], folds: bool) -> None:
        self.alphabet, self.folds = alphabet, folds
        self.automaton = Automaton()
        self.beside: list[Any] = []
        """What is looked at without being read."""

    def part_of(self, items: Sequence[Any]) -> _Part:
        whole = _Part(empty=1)
        for kind, value in items:
            whole = self._after(whole, self._part(kind, value))
        return whole

    def _part(self, kind: Any, value: Any) -> _Part:
        if kind in (names.LITERAL, names.NOT_LITERAL, names.ANY, names.IN):
            return self._place(self._read_by(kind, value))
        if kind is names.BRANCH:
            return self._either([self.part_of(branch) for branch in value[1]])
        if kind is names.SUBPATTERN:
            return self.part_of(value[3])
        if kind is names.ATOMIC_GROUP:
            return self.part_of(value)
        if kind in (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT):
            return self._repeated(*value)
        if kind is names.AT:
            return _Part(empty=1)
        if kind in (names.ASSERT, names.ASSERT_NOT):
            self.beside.append(value[1])
            return _Part(empty=1)
        raise NotAnalysed("it refers to a group" if kind is names.GROUPREF else f"it has {kind}")

    def _place(self, reads: frozenset[str]) -> _Part:
        place = len(self.automaton.reads)
        if place >= MAX_PLACES:
            raise NotAnalysed("it is too large")
        self.automaton.reads.append(reads)
        self.automaton.follow[place] = Counter()
        return _Part(0, Counter([place]), Counter([place]))

    def _after(self, before: _Part, after: _Part) -> _Part:
        self._link(before.last, after.first)
        return _Part(
            min(before.empty * after.empty, 2),
            _added(before.first, after.first, before.empty),
            _added(after.last, before.last, after.empty),
        )

    def _either(self, parts: Sequence[_Part]) -> _Part:
        whole = _Part()
        for part in parts:
            whole = _Part(
                min(whole.empty + part.empty, 2), _added(whole.first, part.first), _added(whole.last, part.last)
            )
        return whole

    def _repeated(self, least: int, most: Any, items: Sequence[Any]) -> _Part:
        if most is not names.MAXREPEAT and most <= MAX_COPIES:
            whole = _Part(empty=1)
            for number in range(most):
                part = self.part_of(items)
                whole = self._after(whole, part if number < least else self._either([part, _Part(empty=1)]))
            return whole
        part = self.part_of(items)
        self._link(part.last, part.first)
        return _Part(1 if least == 0 else min(part.empty, 1), part.first, part.last)

    def _link(self, sources: Counter[int], targets: Counter[int]) -> None:
        for source, leaving in sources.items():
            for target, entering in targets.items():
                follow = self.automaton.follow[source]
                follow[target] = min(follow[target] + leaving * entering, 2)

    def _read_by(self, kind: Any, value: Any) -> frozenset[str]:
        if kind is names.ANY:
            return self.alphabet
        if kind is names.LITERAL:
            return self._same({chr(value)})
        if kind is names.NOT_LITERAL:
            return self.alphabet - {chr(value)}
        negated = value[0][0] is names.NEGATE
        members: set[str] = set()
        for one, about in value[1:] if negated else value:
            members |= set(self._members(one, about))
        return self.alphabet - members if negated else self._same(members)

    def _same(self, members: set[str]) -> frozenset[str]:
        if self.folds:
            members = {other for other in self.alphabet for char in members if other.lower() == char.lower()}
        return self.alphabet & members

    def _members(self, kind: Any, value: Any) -> Iterator[str]:
        if kind is names.LITERAL:
            yield chr(value)
        elif kind is names.RANGE:
            yield from (char for char in self.alphabet if value[0] <= ord(char) <= value[1])
        elif kind is names.CATEGORY:
            sign = _CATEGORIES.get(str(value).rpartition("_")[2], ".")
            negated = "_NOT_" in str(value)
            yield from (char for char in self.alphabet if bool(re.match(sign, char)) is not negated)
        else:
            raise NotAnalysed(f"it has {kind}")


_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def _added(one: Counter[int], other: Counter[int], times: int = 1) -> Counter[int]:
    whole = Counter(one)
    for place, ways in other.items():
        if times:
            whole[place] = min(whole[place] + ways * times, 2)
    return whole
