"""What Spark itself has, understands and does with texts that are permitted, bounded or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.model.sql.bounds import bounded
from headgate.model.sql.calls import calls_of
from headgate.model.sql.catalogue import function_catalogue
from headgate.runtime.compile.query_plan import check_query_plan
from headgate.runtime.engine.engine import Engine
from headgate.runtime.spark_internals.internals import internals
from tests.runtime.small import files, flow, memory, numbered, put

pytestmark = pytest.mark.spark

ROWS = "select id, cast(id as int) n, date'2020-01-01' d, timestamp'2020-01-01' t, 'x' x from range(3)"


def test_every_function_of_spark_is_classified(spark: SparkSession) -> None:
    """With a new Spark, each new function is to be looked at: can it read, remember, or grow as a row says?"""
    listed = {row[0] for row in spark.sql("show functions").collect()} | internals(spark).functions()
    known = function_catalogue()
    assert sorted(name for name in listed - known.all if not name.startswith("headgate_")) == []
    assert sorted(known.all - listed) == ["java_method", "reflect", "try_reflect"]  # the session has forgotten these


WITHIN = (
    "sequence(1, n)",
    "sequence(n, 1)",
    "sequence(5, 1, -2)",
    "sequence(d, date_add(d, n))",
    "sequence(d, date'2021-01-01', interval 1 month)",
    "sequence(t, t + interval 1 day, interval 1 hour)",
    "sequence(cast(null as int), 3)",
    "transform(sequence(1, 3), i -> repeat(x, i))",
    "repeat(repeat(x, n), 2)",
    "repeat(null, 3)",
    "space(n)",
    "lpad(x, 5, ' ')",
    "rpad(x, n)",
    "array_repeat(x, n)",
    "array_insert(array(1, 2), 3, 4)",
    "levenshtein(x, 'abc')",
    "format_number(1.5, n)",
    "format_number(1.5, '#.#')",
)


def test_a_bound_that_is_kept_changes_nothing(spark: SparkSession) -> None:
    rows = spark.sql(ROWS)
    plain = rows.selectExpr(*(f"{text} as v{at}" for at, text in enumerate(WITHIN))).collect()
    checked = rows.selectExpr(*(f"{bounded(text)} as v{at}" for at, text in enumerate(WITHIN))).collect()
    assert all(bounded(text) != text for text in WITHIN)
    assert checked == plain


BEYOND = (
    "sequence(1, 900000000 + id)",
    "sequence(1000000000000000000, 1000000000900000000 + id)",
    "sequence(d, date_add(date'9999-01-01', n))",
    "sequence(t, t + interval 1000 day, interval 1 second)",
    "repeat(x, 2000000000 + n)",
    "space(2000000000 + n)",
    "lpad(x, 2000000000 + n, ' ')",
    "array_repeat(x, 2000000000 + n)",
    "array_insert(array(1), 2000000000 + n, 1)",
    "transform(sequence(1, 50000 + n), i -> repeat('y', 50000))",
    "levenshtein(repeat('a', 100000 + n), repeat('b', 100000))",
)


@pytest.mark.parametrize("text", BEYOND)
def test_beyond_a_bound_a_row_fails_and_spark_lives(spark: SparkSession, text: str) -> None:
    with pytest.raises(PySparkException, match=r": more than [0-9,]+ (elements|characters|comparisons)"):
        spark.sql(ROWS).selectExpr(f"hash({bounded(text)})").collect()
    assert spark.range(3).count() == 3


QUERIES = {
    "select * from `in`": None,
    "with a as (select 1 c) select * from a join `in` on a.c = `in`.id": None,
    "select k, count(*) from `in` group by k having count(*) > 1 order by k limit 3": None,
    "select id, rank() over (partition by k order by v) from `in` lateral view explode(array(1, 2)) as b": None,
    "select id from `in` where id in (select id from `in`) union all select 1": None,
    "select * from csv.`/etc/passwd`": "reads 'csv, /etc/passwd'",
    "with `csv, /etc/passwd` as (select 1) select * from csv.`/etc/passwd`": "reads 'csv, /etc/passwd'",
    "select (select max(id) from other) from `in`": "reads 'other'",
    "select * from `in` where exists (select 1 from parquet.`/tmp`)": "reads 'parquet, /tmp'",
    "select transform(id) using 'cat' from `in`": "a script transformation",
    "select * from range(5)": "a table valued function",
    "select identifier('reflect')('a')": "an expression with unresolved identifier",
    "select java_method('a', 'b') from `in`": "calls 'java_method'",
}


@pytest.mark.parametrize("query", QUERIES)
def test_what_sparks_own_parser_makes_of_a_query(spark: SparkSession, query: str) -> None:
    plan, reason = internals(spark).parsed_query(query), QUERIES[query]
    if reason is None:
        check_query_plan(plan, ["in"])
    else:
        with pytest.raises(InputError, match=reason):
            check_query_plan(plan, ["in"])


CALLS = {
    "upper(lower(a)) || 'reflect(1)' || r'\\' || repeat(\"x('\", 2) -- trim(a)": ["lower", "repeat", "upper"],
    "filter(xs, x -> length(x) > 1) is not null and (abs(a) > 1 or not (sqrt(b) > 2))": [
        "abs",
        "filter",
        "length",
        "sqrt",
    ],
    "case when (a) then coalesce(b, `c(`) end": ["coalesce"],
}
GRAMMAR = {"and", "or", "not", "when", "then"}


@pytest.mark.parametrize("text", CALLS)
def test_spark_sees_the_calls_that_are_checked(spark: SparkSession, text: str) -> None:
    assert sorted(set(_called(internals(spark).parsed_query(f"select {text}")))) == CALLS[text]
    assert sorted({call.folded for call in calls_of(text)} - GRAMMAR) == CALLS[text]


def _called(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for item in value for name in _called(item)]
    if not isinstance(value, dict):
        return []
    is_call = str(value.get("class")).endswith(".UnresolvedFunction")
    own = [str(value["nameParts"]).strip("[]").lower()] if is_call else []
    return own + [name for item in value.values() for name in _called(item)]


def test_nothing_reads_the_environment_or_runs_java(spark: SparkSession) -> None:
    assert spark.sql("select '${env:HOME}'").first() == ("${env:HOME}",)
    for text in ("java_method('java.lang.System', 'nanoTime')", "builtin.reflect('java.lang.System', 'nanoTime')"):
        with pytest.raises(PySparkException, match=r"UNRESOLVED_ROUTINE|SINGLE_PART"):
            spark.sql(f"select {text}").collect()


def test_a_row_that_asks_for_too_much_is_a_dead_letter_and_neighbours_go_on(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 12))
    huge = "if(id = 5, size(sequence(1, 900000000 + id)), 1)"
    greedy = {"type": "derive", "config": {"columns": {"n": huge}}, "on_error": "dead_letter"}
    query = {"type": "sql", "config": {"query": "select id, repeat('x', cast(id as int)) as r from `in`"}}
    engine.submit(
        flow("good", files(tmp_path / "in"), memory("good")),
        flow("greedy", files(tmp_path / "in"), greedy, memory("greedy")),
        flow("asks", files(tmp_path / "in"), query, memory("asks")),
    )
    engine.wait_until_idle()
    assert sorted(row["id"] for row in engine.memory.rows("good")) == list(range(12))
    assert sorted(row["id"] for row in engine.memory.rows("greedy")) == [id for id in range(12) if id != 5]
    assert sorted(len(row["r"]) for row in engine.memory.rows("asks")) == list(range(12))
    assert list(engine.spark.catalog.listTables()) == []
    other = {"type": "sql", "config": {"query": "select * from `out`"}}
    with pytest.raises(InputError, match="its input ports are 'in'"):
        engine.submit(flow("spy", files(tmp_path / "in"), other, memory("spy")))
