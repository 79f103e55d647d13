"""Whether a row's id may be in a set: Spark's own Bloom filter, filled from a file and asked as an expression.

Spark uses it for its joins and has no SQL function for it, so the expression is made by hand.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from headgate.tasks.rowwise import quoted

__all__ = ["may_be_in"]


def may_be_in(frame: DataFrame, column: str, ids: tuple[str, int, int], false_positives: float) -> Column:
    """Whether a column's value, as text, may be among the lines of a version of a file; false for null."""
    session = frame.sparkSession
    jvm: Any = session._jvm
    bridge = jvm.org.apache.spark.sql.classic.ExpressionUtils
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    value = f"cast({quoted(column)} as string)"
    filled, hashed = F.lit(_filled(session, ids, false_positives)), F.expr(f"xxhash64({value})")
    asked = expressions.BloomFilterMightContain(bridge.expression(filled._jc), bridge.expression(hashed._jc))
    return F.coalesce(F.col(quoted(column)).isNotNull() & ClassicColumn(bridge.column(asked)), F.lit(False))


@lru_cache(maxsize=32)
def _filled(session: SparkSession, ids: tuple[str, int, int], false_positives: float) -> bytes:
    """A filter that holds the ids, in the form in which Spark stores it."""
    path, _, _ = ids
    hashed = session.read.text(path).where("value <> ''").selectExpr("xxhash64(value) as id").persist()
    jvm: Any = session._jvm
    try:
        made = hashed._jdf.stat().bloomFilter("id", max(hashed.count(), 1), false_positives)
    finally:
        hashed.unpersist()
    out = jvm.java.io.ByteArrayOutputStream()
    made.writeTo(out)
    return bytes(out.toByteArray())
