"""Whether a regular expression may take time that explodes with the length of a text. Decided on the pattern alone.

Java tries all ways in which a pattern can match before it gives up. If a pattern can read some text in two ways and be
where it was, the number of ways doubles with each repetition of that text; if it can be at two repetitions in turn, it
is the length of the text to the power of how many there are in a row. These are the exponential and the polynomial
degree of ambiguity of the pattern's automaton [1]; the automaton here is Glushkov's, whose states are the places of the
pattern, with the number of ways from each to the next.

[1] A. Weber and H. Seidl, On the degree of ambiguity of finite automata, Theoretical Computer Science 88, 1991.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from headgate.errors import BadValue, shorten
from headgate.model.sql.pattern_automaton import Automaton, NotAnalysed, automata_of

__all__ = ["MAX_DEGREE", "MAX_WILDCARDS", "check_pattern", "check_wildcards"]

MAX_DEGREE = 4
"""So many repetitions in a row may be able to read the same text."""

MAX_STEPS = 700
"""Steps from place to place within a repetition; the analysis takes their square."""

MAX_WILDCARDS = 4
"""The signs % of a pattern of LIKE."""

_REMEDY = "a pattern in which no repetition is within another one, or both cannot read the same text"


def check_wildcards(pattern: str) -> None:
    """Raise ``ValueError`` for a pattern of LIKE with too many wildcards."""
    if len(re.findall(r"(?<!\\)%+", pattern)) > MAX_WILDCARDS:
        raise BadValue(f"pattern {shorten(pattern)} has many wildcards", f"at most {MAX_WILDCARDS} times %")


@lru_cache(maxsize=4_096)
def check_pattern(pattern: str) -> None:
    r"""Raise ``ValueError`` for a regular expression that may explode, or that cannot be analysed.

    >>> check_pattern(r"(\d+,)*\d+ .*")
    >>> check_pattern("(a+)+b")
    Traceback (most recent call last):
        ...
    headgate.errors.BadValue: regular expression '(a+)+b' takes time that doubles with each character
    """
    try:
        for automaton in automata_of(pattern):
            _check(pattern, automaton)
    except (NotAnalysed, re.error, RecursionError, OverflowError) as error:
        message = f"regular expression {shorten(pattern)} cannot be analysed ({str(error)[:80]})"
        raise BadValue(message, "a shorter one, without references to groups") from None


def _check(pattern: str, automaton: Automaton) -> None:
    components = _components(automaton)
    if any(_is_exponential(automaton, component) for component in components):
        raise BadValue(f"regular expression {shorten(pattern)} takes time that doubles with each character", _REMEDY)
    degree = _degree(automaton, components)
    if degree > MAX_DEGREE:
        message = f"regular expression {shorten(pattern)} has {degree} repetitions in a row that may read the same text"
        raise BadValue(message, f"at most {MAX_DEGREE}")


def _components(automaton: Automaton) -> list[frozenset[int]]:
    """The places that can be reached from each other, sets that loop only, in the order in which a text passes them."""
    edges = [(source, target) for source, targets in automaton.follow.items() for target in targets]
    graph = _graph(n=len(automaton.reads), edges=edges)
    looping = {source for source, target in edges if source == target}
    parts = [frozenset(part) for part in graph.connected_components(mode="strong")]
    order = {place: rank for rank, place in enumerate(_order(graph, parts))}
    return sorted((p for p in parts if len(p) > 1 or p & looping), key=lambda part: min(order[place] for place in part))


def _graph(n: int, edges: Sequence[tuple[int, int]]) -> Any:
    import igraph

    return igraph.Graph(n=n, edges=edges, directed=True)


def _order(graph: Any, parts: list[frozenset[int]]) -> list[int]:
    """The places, those of earlier parts first."""
    part_of = {place: number for number, part in enumerate(parts) for place in part}
    edges = {(part_of[e.source], part_of[e.target]) for e in graph.es if part_of[e.source] != part_of[e.target]}
    condensed = _graph(n=len(parts), edges=sorted(edges))
    return [place for number in condensed.topological_sorting() for place in sorted(parts[number])]


def _is_exponential(automaton: Automaton, component: frozenset[int]) -> bool:
    """Whether from a place two different ways lead back to it over the same text."""
    steps = sum(len(automaton.follow[place].keys() & component) for place in component)
    if steps > MAX_STEPS:
        raise NotAnalysed("it is too large")
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for left in component:
        for right in component:
            pairs[left, right] = list(_together(automaton, component, left, right))
    if any(ways > 1 for place in component for target, ways in automaton.follow[place].items() if target in component):
        return True
    numbers = {pair: number for number, pair in enumerate(pairs)}
    edges = [(numbers[pair], numbers[after]) for pair, targets in pairs.items() for after in targets]
    graph = _graph(n=len(pairs), edges=edges)
    names = list(pairs)
    for part in graph.connected_components(mode="strong"):
        inside = [names[number] for number in part]
        if any(left == right for left, right in inside) and any(left != right for left, right in inside):
            return True
    return False


def _together(automaton: Automaton, within: frozenset[int], left: int, right: int) -> Iterator[tuple[int, int]]:
    """Where two places lead when both read the same character."""
    for one in automaton.follow[left]:
        for other in automaton.follow[right]:
            if one in within and other in within and automaton.reads[one] & automaton.reads[other]:
                yield one, other


def _degree(automaton: Automaton, components: list[frozenset[int]]) -> int:
    """The longest row of loops of which each may hand over to the next in the midst of a text that both can read."""
    longest = [1] * len(components)
    for later, target in enumerate(components):
        for earlier in range(later):
            if longest[earlier] + 1 > longest[later] and _hands_over(automaton, components[earlier], target):
                longest[later] = longest[earlier] + 1
    return max(longest, default=0)


def _hands_over(automaton: Automaton, first: frozenset[int], last: frozenset[int]) -> bool:
    """Whether some text leads from a place back to it, from it to a later one, and from that one back to it."""
    return any(_meets(automaton, first, last, p, q) for p in first for q in last)


def _meets(automaton: Automaton, first: frozenset[int], last: frozenset[int], p: int, q: int) -> bool:
    seen, waiting = {(p, p, q)}, deque([(p, p, q)])
    while waiting:
        at = waiting.popleft()
        for a in automaton.follow[at[0]].keys() & first:
            for c in automaton.follow[at[2]].keys() & last:
                both = automaton.reads[a] & automaton.reads[c]
                for b in automaton.follow[at[1]] if both else ():
                    after = (a, b, c)
                    if not both & automaton.reads[b] or after in seen:
                        continue
                    if after == (p, q, q):
                        return True
                    if len(seen) > 20_000:
                        raise NotAnalysed("it is too large")
                    seen.add(after)
                    waiting.append(after)
    return False
