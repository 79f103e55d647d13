"""Mutated expressions, queries and patterns: each is read or refused with a sentence, soon, and nothing is kept."""

from __future__ import annotations

import random
import resource
import time

import pytest
from pydantic import TypeAdapter, ValidationError

from headgate.model.sql.pattern_cost import check_pattern
from headgate.model.task_type import Expression, QueryOfRows
from tests.model.sql.test_pattern_cost import EXPLODING, FINE
from tests.model.sql.test_permitted import PERMITTED, QUERIES_REFUSED, REFUSED

EXPRESSION, QUERY = TypeAdapter(Expression), TypeAdapter(QueryOfRows)
QUERIES = (
    *QUERIES_REFUSED,
    "select a, count(*) from `in` group by a",
    "with a as (select 1) select * from a join `in`",
)
PATTERNS = (*FINE, *EXPLODING)
PIECES = (
    "'",
    '"',
    "`",
    "(",
    ")",
    ",",
    "\\",
    "--",
    "/*",
    "*/",
    "repeat(",
    "sequence(",
    " rlike ",
    "->",
    "*",
    "+",
    "{1,9}",
)
LONGEST_S, MOST_GROWTH_MB = 5.0, 300


def mutated(text: str, draw: random.Random, others: tuple[str, ...]) -> str:
    """A text with some damage: letters gone, doubled or replaced, parts of other texts put in, repeated or swapped."""
    for _ in range(draw.randint(1, 4)):
        at, end = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
        kind = draw.randrange(6)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + draw.choice(PIECES) * draw.randint(1, 3) + text[at:]
        elif kind == 2:
            text = text[:at] + text[at:end] * draw.choice((2, 3, 30)) + text[end:]
        elif kind == 3:
            text = text[:at] + draw.choice(others) + text[end:]
        elif kind == 4:
            text = text[:at] + chr(draw.choice((0, 9, 0x27, 0xA0, 0x200B, 0xD800, 0x10FFFF))) + text[at:]
        else:
            text = text[end:] + text[at:end] + text[:at]
    return text[:12_000]


def refusal_of(kind: int, text: str) -> str | None:
    """Why a text is refused; raises what is no refusal."""
    try:
        (EXPRESSION.validate_python, QUERY.validate_python, check_pattern)[kind](text)
    except ValidationError as refusal:
        return max((error["msg"] for error in refusal.errors(include_url=False, include_input=False)), key=len)
    except ValueError as refusal:
        if kind != 2:
            raise
        return str(refusal)
    return None


def check(count: int, seed: int) -> None:
    draw, accepted, slowest = random.Random(seed), 0, 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(count):
        kind = number % 3
        texts = (tuple(REFUSED) + PERMITTED, QUERIES, PATTERNS)[kind]
        text = mutated(draw.choice(texts), draw, texts)
        began = time.process_time()
        reason = refusal_of(kind, text)
        accepted += reason is None
        assert len(reason or "") < 400
        slowest = max(slowest, time.process_time() - began)
        assert slowest < LONGEST_S, repr(text)
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mb < MOST_GROWTH_MB
    assert count * 0.03 < accepted < count * 0.9, "some of them are fine, and most are not"


def test_some_mutated_texts() -> None:
    check(1_500, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_mutated_texts(seed: int) -> None:
    check(25_000, seed)
