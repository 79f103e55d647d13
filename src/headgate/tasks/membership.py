"""Whether a row's id may be in a set: few ids as they are, more by Spark's own Bloom filter, filled from a file.

Spark uses it for its joins and has no SQL function for it, so the expression is made by hand.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from headgate.tasks.rowwise import quoted

__all__ = ["few_ids", "may_be_in"]

FEW = 1_000
"""Up to so many ids a set takes no more room than a filter that passes hardly any other, and passes no other."""


def may_be_in(frame: DataFrame, column: str, ids: tuple[str, int, int], false_positives: float) -> Column:
    """Whether a column's value, as text, may be among the lines of a version of a file; false for null."""
    known = few_ids(ids)
    if known is not None:
        text = F.expr(f"cast({quoted(column)} as string)")
        return F.coalesce(text.isin(*known), F.lit(False)) if known else F.lit(False)
    session = frame.sparkSession
    jvm: Any = session._jvm
    bridge = jvm.org.apache.spark.sql.classic.ExpressionUtils
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    value = f"cast({quoted(column)} as string)"
    filled, hashed = F.lit(_filled(session, ids, false_positives)), F.expr(f"xxhash64({value})")
    asked = expressions.BloomFilterMightContain(bridge.expression(filled._jc), bridge.expression(hashed._jc))
    return F.coalesce(F.col(quoted(column)).isNotNull() & ClassicColumn(bridge.column(asked)), F.lit(False))


@lru_cache(maxsize=32)
def few_ids(ids: tuple[str, int, int]) -> tuple[str, ...] | None:
    """The ids of a version of a file, if there are few."""
    found: set[str] = set()
    with Path(ids[0]).open(encoding="utf-8", errors="replace") as file:
        for line in file:
            found.add(line.removesuffix("\n"))
            if len(found) > FEW + 1:
                return None
    found.discard("")
    return tuple(sorted(found)) if len(found) <= FEW else None


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
