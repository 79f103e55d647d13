"""SQL expressions: what they read, and what is none."""

from __future__ import annotations

import contextlib
import logging
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.expression import check_query, columns_of

READS: dict[str, tuple[str, ...]] = {
    "1": (),
    "a": ("a",),
    "`my col` > 3": ("my col",),
    "a.b.c[0].d": ("a",),
    "b + a + b": ("b", "a"),
    "filter(xs, x -> x > y)": ("xs", "y"),
    "transform(xs, (x, i) -> x.y + i)": ("xs",),
    "count(*)": (),
    "count(a) filter (where b > 1)": ("a", "b"),
    "first_value(a) ignore nulls": ("a",),
    "sum(v) over (partition by k order by t)": ("v", "k", "t"),
    "t + interval 5 minutes": ("t",),
    "timestamp > '2020' and date = current_date": ("timestamp", "date"),
    "date '2020-01-01' < d": ("d",),
    "cast(a as struct<b: array<int>>)": ("a",),
    "case when a then b else c end": ("a", "b", "c"),
    "a is not null and not b": ("a", "b"),
    "extract(hour from t)": ("t",),
    "a -- why\n + b /* and */": ("a", "b"),
    "text rlike 'x;y'": ("text",),
    "named_struct('a', v)": ("v",),
    "a <=> b": ("a", "b"),
}
NO_EXPRESSIONS = {
    "": "an empty SQL expression",
    " \n": "an empty SQL expression",
    "value >": "an operand is missing",
    "'unclosed": "a quote or comment is not closed",
    "a /* unclosed": "a quote or comment is not closed",
    "a b": "something in it does not belong there",
    "a, b": "something in it does not belong there",
    "a as b": "something in it does not belong there",
    "a; b": "a single expression",
    "*": "a single expression",
    "a.*": "a single expression",
    "select 1": "something in it does not belong there",
    "(select 1)": "a single expression",
    "drop table x": "something in it does not belong there",
    "a in (select b from c)": "a query inside an expression",
    "exists (select 1)": "a query inside an expression",
    ":x": "a parameter inside an expression",
    "a = ?": "a parameter inside an expression",
    "${x} > 1": "a parameter inside an expression",
    "a = '\x07'": "a control character in a SQL expression",
    "x" * 10_001: "more than 10,000 characters",
    "date(" * 30: "nested too deeply",
    "(" * 101: "nested too deeply",
}


@pytest.mark.parametrize("text", READS)
def test_the_columns_that_an_expression_reads(text: str) -> None:
    assert columns_of(text) == READS[text]


@pytest.mark.parametrize("text", NO_EXPRESSIONS, ids=lambda text: text[:20])
def test_what_is_no_expression_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=NO_EXPRESSIONS[text]) as message:
        columns_of(text)
    assert len(str(message.value)) < 200


def test_a_query_is_a_single_select() -> None:
    for text in ("select 1", "with a as (select 1) select * from a", "select 1 union all select 2", "(select 1)"):
        check_query(text)
    for text in ("", "a", "drop table x", "insert into x select 1", "values (1)", "select 1; select 2", "select 'x"):
        with pytest.raises(ValueError, match="SQL query"):
            check_query(text)
    with pytest.raises(ValueError, match="nested too deeply"):
        check_query("select * from a" + " join b" * 40)


WORDS = (
    "a 1 'x' ( ) [ ] { } < > , . :: -> = + - not and or case when then end cast( as int date struct array map interval"
)
WORDS += (
    " in is null between like select from where over partition by if( if exists( filter ? ; * string timestamp join"
)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=25), st.integers(1, 40))
def test_any_words_are_read_or_refused_in_no_time(words: list[str], times: int) -> None:
    started = time.process_time()
    for reads in (columns_of, check_query):
        with contextlib.suppress(ValueError):
            reads((" ".join(words) + " ") * times)
    assert time.process_time() - started < 1


def test_the_parser_logs_nothing(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    try:
        for text in ("if a", "a:['0.1']", "show x"):
            with pytest.raises(ValueError, match="not a SQL"):
                columns_of(text)
            with pytest.raises(ValueError, match="not a SQL"):
                check_query(text)
    finally:
        root.handlers = handlers
    assert capfd.readouterr() == ("", "")
