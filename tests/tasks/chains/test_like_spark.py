"""Windows as chains beside Spark's own aggregation of the same rows: values and types of every aggregate."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pytest

from headgate.model.chain_work import HASH, Moment
from headgate.model.work import RowWise
from headgate.tasks.chains.hashing import hash_keys
from headgate.tasks.chains.window_work import WINDOW_WORK
from headgate.tasks.windows import EventTimeWindow, spark_span
from tests.tasks.chains.memory_chain import InMemoryState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Kind = Literal["tumbling", "sliding", "session"]
SECOND = 1_000_000
NAN = float("nan")
SCHEMA = pa.schema(
    [
        ("t", pa.timestamp("us", "UTC")),
        ("k", pa.float64()),
        ("byte", pa.int8()),
        ("i", pa.int32()),
        ("g", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("c", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("xs", pa.list_(pa.int32())),
    ]
)
ROWS = [
    (0, 1.0, 1, 3, 10, 1.5, 2.5, Decimal("1.05"), Decimal("1"), "ä", True, 4, [1]),
    (1, 1.0, 2, None, 20, None, NAN, Decimal("2.10"), None, "z", False, 3, [2, 3]),
    (2, 1.0, None, 3, 30, 2.5, 1.0, None, Decimal("3.5"), None, None, None, None),
    (3, 0.0, 5, 1, 40, 0.5, None, Decimal("0.01"), None, "a", True, 9, []),
    (4, -0.0, 6, 2, 50, 1.0, 4.0, Decimal("0.02"), None, "b", True, 8, [7]),
    (11, -0.0, 6, 2, 50, 1.0, 4.0, Decimal("0.02"), Decimal("2"), "b", True, 8, [7]),
    (5, None, None, None, None, None, None, None, None, None, None, None, None),
    (6, NAN, 7, 4, 1, 3.0, 1.0, Decimal("9.99"), None, "q", None, 1, [5]),
    (7, NAN, 7, 8, 2, 3.5, 2.0, Decimal("9.98"), None, "p", False, 2, None),
    (8, NAN, 8, 8, 9, 4.0, 8.0, Decimal("1.00"), Decimal("7"), "p", False, 2, [1, 1]),
    (20, NAN, 8, 8, 9, 4.0, 8.0, Decimal("1.00"), Decimal("7"), "p", False, 2, [1, 1]),
]
EXPRESSIONS = """count(*)|count(i)|count(distinct i)|count(distinct i, s)|count_if(i > 2)|sum(byte)|sum(i)|sum(f)
sum(d)|sum(c)|sum(wide)|sum(distinct i)|sum(if(i > 2, g, 0))|sum(i) filter (where b)|avg(i)|avg(f)
avg(c)|avg(wide)|avg(distinct i)|min(d)|max(d)|max(f)|min(s)|max(s)|max(b)|max(day)|max(t)
max(struct(i, s))|max(c) - min(c)|round(avg(d), 1) + 1|stddev(i)|stddev_pop(c)|var_samp(g)
var_pop(d)|variance(byte)|skewness(g)|kurtosis(g)|corr(i, g)|covar_pop(i, g)|covar_samp(i, g)
percentile(g, 0.3)|percentile(i, array(0.1, 0.9))|percentile(c, 0.5)|median(byte)|max_by(s, g)
min_by(i, g)|approx_percentile(g, 0.5)|approx_percentile(c, array(0.2, 0.5, 0.9))
percentile_approx(i, 0.5, 100)|bool_and(b)|any(b)|every(b)|sort_array(collect_list(i))
sort_array(collect_set(s))|size(collect_list(xs))|approx_count_distinct(g)|mode(if(i > 3, 'high', 'low'))|first(i, true)
last(s, true)|max(upper(s))|concat(max(s), min(s))|coalesce(max(i), 0)|size(array_agg(byte))|max(k)
1 + count(*)"""
TEXTS = EXPRESSIONS.replace("\n", "|").split("|")


def rows() -> pa.Table:
    columns = [list(column) for column in zip(*ROWS, strict=True)]
    columns[0] = [second * SECOND for second in columns[0]]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def expressed(does: RowWise, frame: DataFrame) -> DataFrame:
    assert does.columns is not None
    return frame.selectExpr(*(f"{text} as `{name}`" for name, text in does.columns))


def options_of(kind: Kind) -> EventTimeWindow:
    return EventTimeWindow(
        time="t",
        kind=kind,
        size="10s",
        slide="4s" if kind == "sliding" else None,
        key=("k",),
        columns={f"c{place}": text for place, text in enumerate(TEXTS)},
    )


def by_chain(spark: SparkSession, options: EventTimeWindow, frame: DataFrame) -> DataFrame:
    """Two epochs with the rows, one that closes all windows."""
    (before,) = WINDOW_WORK.before(options, [frame.columns])
    kernel = expressed(before, frame).toArrow()
    kernel = kernel.add_column(0, HASH, pa.array(hash_keys([kernel["k"]], kernel.num_rows)))
    chain = WINDOW_WORK.start(options, [kernel.schema])
    state = InMemoryState({table.name: table.schema for table in chain.tables}, generous=False)
    outputs = []
    for epoch, (part, after) in enumerate(
        ((kernel.slice(0, 5), None), (kernel.slice(5), None), (kernel.slice(0, 0), 10**9))
    ):
        folded = chain.fold(Moment(epoch, None, after), [part], state)
        outputs.append(folded.output)
        for name, appended in folded.appended.items():
            state.files[name].append(appended)
    made = spark.createDataFrame(pa.concat_tables(outputs))
    return made if chain.after is None else expressed(chain.after, made)


def by_spark(options: EventTimeWindow, frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    span, slide = spark_span(options.size), options.slide and spark_span(options.slide)
    window = F.session_window("t", span) if options.kind == "session" else F.window("t", span, slide)
    grouped = frame.groupBy(window.alias("w"), "k").agg(*(F.expr(t).alias(n) for n, t in options.columns.items()))
    return grouped.selectExpr("w.start as window_start", "w.end as window_end", "k", *options.columns)


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}") + 0.0
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "session"])
def test_every_aggregate_gives_what_spark_gives(spark: SparkSession, kind: Kind) -> None:
    options = options_of(kind)
    frame = spark.createDataFrame(rows()).coalesce(1)
    made, due = by_chain(spark, options, frame), by_spark(options, frame)
    names = dict(zip(options.columns, options.columns.values(), strict=True))
    kinds = {names.get(field.name, field.name): field.dataType.simpleString() for field in made.schema}
    assert kinds == {names.get(field.name, field.name): field.dataType.simpleString() for field in due.schema}
    results = [{tuple(map(repr, map(plain, row[:3]))): row for row in frame.collect()} for frame in (made, due)]
    assert results[0].keys() == results[1].keys()
    for window, row in results[1].items():
        for name, text in names.items():
            assert plain(results[0][window][name]) == plain(row[name]), (text, window)


def test_sessions_that_touch_are_as_spark_has_them(spark: SparkSession) -> None:
    times = [0, 10 * SECOND, 20 * SECOND + 1_000]
    frame = spark.createDataFrame(rows().slice(0, 3).set_column(0, "t", pa.array(times, SCHEMA.field("t").type)))
    options = EventTimeWindow(time="t", kind="session", size="10s", key=("k",), columns={"n": "count(*)"})
    assert sorted(by_chain(spark, options, frame).collect()) == sorted(by_spark(options, frame).collect())
