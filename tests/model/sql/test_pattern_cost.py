"""Which regular expressions explode: against how many ways there are to match, counted by trying them all."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.sql.pattern_cost import check_pattern, check_wildcards

FINE = (
    r"\d{4}-\d{2}-\d{2}",
    r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$",
    r"(\d+,)*\d+",
    r"(?i)(foo|bar)+",
    r".*error.*",
    r"^\s*(.*?)\s*=\s*(.*?)\s*$",
    r"(?<name>\p{L}+) \h+",
    r"[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*",
    r"\W+",
    r"(a|b|c)*d",
)
EXPLODING = (
    r"(a+)+b",
    r"(a*)*b",
    r"(a|a)*b",
    r"(a|ab|b)*c",
    r"(x+x+)+y",
    r"(.*,)*x",
    r"([a-z]+)*\d",
    r"(\w+\s?)*$",
    r"(?i)(foo|FOO)+x",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(?=(a+)+b)x",
    r"(a{1,30}){1,30}b",
)
OTHERWISE = {r"(a)\1": "refers to a group", r".*a.*b.*c.*d.*e": "5 repetitions", "a" * 2_000: "1,000", "(": "analysed"}


@pytest.mark.parametrize("pattern", FINE)
def test_patterns_of_every_day_pass(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize("pattern", EXPLODING)
def test_patterns_that_explode_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="doubles with each character"):
        check_pattern(pattern)


@pytest.mark.parametrize("pattern", OTHERWISE, ids=lambda text: text[:10])
def test_others_are_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match=OTHERWISE[pattern]):
        check_pattern(pattern)


def test_wildcards_are_counted() -> None:
    check_wildcards("%a%b%c%")
    check_wildcards(r"\%a\%b\%c\%d\%e\%")
    with pytest.raises(ValueError, match="many wildcards"):
        check_wildcards("%a%b%c%d%")


Tree = tuple[str, tuple["Tree", ...]]
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from("ab").map(lambda c: (c, ())),
    lambda inner: st.one_of(
        st.tuples(st.just("|"), st.tuples(inner, inner)),
        st.tuples(st.just("."), st.tuples(inner, inner)),
        st.tuples(st.just("*"), st.tuples(inner)),
        st.tuples(st.just("?"), st.tuples(inner)),
    ),
    max_leaves=5,
)


def written(tree: Tree) -> str:
    kind, parts = tree
    inner = [written(part) for part in parts]
    if kind == "|":
        return f"({inner[0]}|{inner[1]})"
    if kind == ".":
        return "".join(inner)
    return kind if not parts else f"({inner[0]}){kind}"


def ends(tree: Tree, text: str, start: int) -> list[int]:
    """Where matches end, once for each way: as a matcher tries them that never repeats what reads nothing."""
    kind, parts = tree
    if kind in "ab":
        return [start + 1] if text[start : start + 1] == kind else []
    if kind == "|":
        return ends(parts[0], text, start) + ends(parts[1], text, start)
    if kind == ".":
        return [end for middle in ends(parts[0], text, start) for end in ends(parts[1], text, middle)]
    if kind == "?":
        return [start, *ends(parts[0], text, start)]
    reached, waiting = [start], [start]
    while waiting:
        position = waiting.pop()
        further = [end for end in ends(parts[0], text, position) if end > position]
        reached += further
        waiting += further
        assert len(reached) < 200_000
    return reached


@settings(max_examples=150)
@given(TREES)
def test_what_passes_has_few_ways(tree: Tree) -> None:
    """Of all texts of a length, none has more ways than a polynomial of the degree that is allowed."""
    with contextlib.suppress(ValueError):
        check_pattern(written(tree))
        for period in ("a", "b", "ab", "aab", "abb"):
            ways = {size: len(ends(tree, period * size, 0)) for size in (4, 8)}
            # A polynomial of degree 4 grows by 2**4, and something for its lower terms; an exponential one by more.
            assert ways[8] <= max(ways[4], 4) * 60


def test_an_analysis_takes_no_time() -> None:
    started = time.process_time()
    for pattern in (
        "(a|b)" * 100,
        "(" * 90 + "a" + ")*" * 90,
        "a*" * 200,
        "[a-z]*" * 160,
        "((a|b)*c)*" * 20,
        f"({'a|ab|' * 50}b)*c",
    ):
        with contextlib.suppress(ValueError):
            check_pattern(pattern)
    assert time.process_time() - started < 5
