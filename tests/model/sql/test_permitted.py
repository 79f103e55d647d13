"""What a SQL text may call, how its words are separated, and what is bounded."""

from __future__ import annotations

import contextlib
import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from headgate.documents import parse
from headgate.errors import InvalidDataflow
from headgate.model.sql.bounds import bounded
from headgate.model.sql.catalogue import function_catalogue
from headgate.model.sql.lexer import words_of
from headgate.model.sql.permitted import MAX_OPERATORS, check_permitted, value_of
from headgate.model.task_type import Expression, QueryOfRows

PERMITTED = (
    "upper(city) = 'java_method(1)'",
    "name = \"reflect('a')\"",
    "`reflect` > 1 and `java_method`.x is null",
    "a -- reflect('x')\n + b /* java_method('x') */",
    "r'\\' = upper(a)",
    "cast(a as decimal(10, 2)) in (1, 2) and not (b or c)",
    "sum(v) over (partition by k order by t rows between 1 preceding and current row)",
    "count(a) filter (where b > 1)",
    "filter(xs, x -> x rlike '^[a-z]+@[a-z]+$')",
    "extract(hour from t) + timestampadd(HOUR, 1, t)",
    "round(v, 2) + percentile_approx(v, 0.5, 100)",
    "format_string('%5.2f %s', v, k)",
    "a like 'x%' or a like any ('%b%', 'c%')",
    "regexp_replace(text, r'(\\d+,)*\\d+', '')",
    " + ".join(["a"] * MAX_OPERATORS),
)
REFUSED = {
    "java_method('java.lang.System', 'exit', 3)": "it runs Java code",
    "upper(REFLECT ('a', 'b'))": "it runs Java code",
    "reflect/**/('a')": "it runs Java code",
    "reflect -- a\n('a')": "it runs Java code",
    "`reflect`('a')": "without quotes",
    "system.builtin.reflect('a')": "nothing before it",
    "identifier('reflect')('a')": "not known",
    "from_xml(a, 'b int', map('rowValidationXSDPath', '/etc/passwd'))": "reads files",
    "headgate_bloom_filter(a, 1, 9)": "not known",
    "uper(a)": "did you mean 'upper'",
    "'\\'' || reflect('a') || '\\''": "it runs Java code",
    "r'\\' || reflect('a') || r'\\'": "it runs Java code",
    "'it''s' || reflect('a')": "it runs Java code",
    "1r'\\' || reflect('a') || '\\''": "outside of quotes",
    "a /* /* */ reflect('a') */": "two ways",
    "a /*+ hint */ + 1": "two ways",
    "a -- b\\\n reflect('a')": "two ways",
    "re\u200bflect('a')": "outside of quotes",
    "a\u00a0+ b": "outside of quotes",
    "$$reflect$$": "outside of quotes",
    "a rlike '(a+)+b'": "doubles with each character",
    "a rlike ('(a+)+b')": "doubles with each character",
    "a rlike '(a' '+)+b'": "is computed",
    "a rlike '(a' || '+)+b'": "is computed",
    "a rlike b": "is computed",
    "regexp_extract(a, b, 1)": "is computed",
    "split(a, '(x|x)*y')": "doubles with each character",
    "a like '%a%b%c%d%e%f'": "many wildcards",
    "a not ilike any ('%a%b%c%d%e%f')": "many wildcards",
    "round(v, 1000000000)": "a whole number up to 400",
    "round(v, n)": "written in the text",
    "format_string('%999999999d', v)": "up to 1,000",
    "format_string(f, v)": "is computed",
    "approx_count_distinct(v, 0.00001)": "from 0.01",
    "percentile_approx(v, 0.5, 2000000000)": "up to 100,000",
    "repeat(n => 5, str => 'a')": "by their places",
    "window(t, '1 year', '1 second')": "tasks of type window",
    " + ".join(["a"] * (MAX_OPERATORS + 2)): "at most 400",
}
EXPRESSION, QUERY = TypeAdapter(Expression), TypeAdapter(QueryOfRows)


@pytest.mark.parametrize("text", PERMITTED, ids=lambda text: text[:40])
def test_what_is_permitted(text: str) -> None:
    check_permitted(text)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_what_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as refusal:
        check_permitted(text)
    sentence = getattr(refusal.value, "sentence", str(refusal.value))
    assert REFUSED[text] in sentence
    assert len(sentence) < 300


QUERIES_REFUSED = (
    "select * from csv.`/etc/passwd`",
    "select * from parquet.`/tmp/x` join `in`",
    "select transform(a) using 'cat' from `in`",
    "select * from range(5)",
    "select reflect('a', 'b') from `in`",
    "select * from default.t",
    "select * from `in` where a in (select _c0 from text.`/etc/passwd`)",
    "with c as (select * from json.`/tmp`) select * from c",
    "select * from `in` where a = :x",
    "select * from identifier('csv.`/etc/passwd`')",
)


@pytest.mark.parametrize("text", QUERIES_REFUSED)
def test_a_query_of_rows_reads_nothing_but_its_ports(text: str) -> None:
    with pytest.raises(ValueError, match=r"SQL query|function|called|call of|not a SQL"):
        QUERY.validate_python(text)


def test_a_refusal_has_the_line_of_its_expression() -> None:
    text = """
name: thief
tasks:
  - {id: in, type: rate}
  - id: out
    type: filter
    inputs: [{from: in, where: "reflect('a', 'b') = 1"}]
    config:
      where: java_method('a', 'b') = 1
"""
    with pytest.raises(InvalidDataflow) as caught:
        parse(text, "yaml")
    assert [(fault.place.line, "Java" in fault.message) for fault in caught.value.faults] == [(7, True)]
    with pytest.raises(InvalidDataflow) as caught:
        parse(text.replace("{from: in, where: \"reflect('a', 'b') = 1\"}", "in"), "yaml")
    assert [(fault.place.line, "Java" in fault.message) for fault in caught.value.faults] == [(9, True)]


PIECES = ["'", '"', "`", "\\", "r'", "--", "/*", "*/", "\n", " ", "reflect", "(", ")", "a", "''", "\\'", "x", "+", "\r"]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("'\\\\'reflect('")
def test_words_are_the_text_without_what_is_between_them(text: str) -> None:
    with contextlib.suppress(ValueError):
        words = words_of(text)
        assert all(text[word.start : word.end] == word.text for word in words)
        assert all(one.end <= other.start for one, other in pairwise(words))


def test_every_function_has_one_class() -> None:
    catalogue = function_catalogue()
    assert len(catalogue.all) == len(catalogue.allowed) + len(catalogue.bounded) + len(catalogue.refused)
    assert all(catalogue.refused.values())


def test_texts_without_bounded_functions_stay_as_they_are() -> None:
    for text in ("a + b", "upper('repeat(a, 5)')", "round(v, 2)", "a rlike 'x'", "`repeat`"):
        assert bounded(text) is text
    assert "raise_error" in bounded("REPEAT (a, n)")


def test_bounds_within_bounds_do_not_grow_for_ever() -> None:
    text = "'x'"
    for _ in range(4):
        text = f"repeat({text}, 2)"
    EXPRESSION.validate_python(text)
    for _ in range(12):
        text = f"repeat({text}, 2)"
    with pytest.raises(ValueError, match=r"calls within calls|nested too deeply"):
        EXPRESSION.validate_python(text)


VALUES = {
    "'a'": "a",
    "'it''s'": "it's",
    "'\\n\\\\d'": "\n\\d",
    "r'\\n'": "\\n",
    '"a""b"': 'a"b',
    "'\\u0041\\101'": "AA",
}


@pytest.mark.parametrize("text", VALUES)
def test_the_value_of_a_text(text: str) -> None:
    assert value_of(words_of(text)[0]) == VALUES[text]


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(["a", "(", ")", ",", "->", "repeat", "sequence", "lpad", "[", "]", "'x'"]), max_size=60)
)
def test_nothing_takes_long(pieces: list[str]) -> None:
    started = time.process_time()
    for act in (check_permitted, bounded):
        with contextlib.suppress(ValueError):
            act(" ".join(pieces))
    assert time.process_time() - started < 1
