"""Whether a row's id may be in a set: few ids as they are, more by Spark's own Bloom filter, filled from a file.

Spark uses it for its joins; the runtime gives it names in SQL (:mod:`headgate.tasks.sql_text`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.tasks.sql_text import BLOOM_FILTER, MIGHT_CONTAIN, quoted

__all__ = ["few_ids", "may_be_in"]

FEW = 1_000
"""Up to so many ids a set takes no more room than a filter that passes hardly any other, and passes no other."""


def may_be_in(frame: DataFrame, column: str, ids: tuple[str, int, int], false_positives: float) -> Column:
    """Whether a column's value, as text, may be among the lines of a version of a file; false for null."""
    known = few_ids(ids)
    if known is not None:
        text = F.expr(f"cast({quoted(column)} as string)")
        return F.coalesce(text.isin(*known), F.lit(False)) if known else F.lit(False)
    filled = F.lit(_filled(frame.sparkSession, ids, false_positives))
    hashed = F.expr(f"xxhash64(cast({quoted(column)} as string))")
    might = F.call_function(MIGHT_CONTAIN, filled, hashed)
    return F.coalesce(F.col(quoted(column)).isNotNull() & might, F.lit(False))


@lru_cache(maxsize=32)
def few_ids(ids: tuple[str, int, int]) -> tuple[str, ...] | None:
    """The ids of a version of a file, if there are few."""
    ids_read: set[str] = set()
    with Path(ids[0]).open(encoding="utf-8", errors="replace") as file:
        for line in file:
            ids_read.add(line.removesuffix("\n"))
            if len(ids_read) > FEW + 1:
                return None
    ids_read.discard("")
    return tuple(sorted(ids_read)) if len(ids_read) <= FEW else None


@lru_cache(maxsize=32)
def _filled(session: SparkSession, ids: tuple[str, int, int], false_positives: float) -> bytes:
    """A Bloom filter of the ids, as Spark stores it: -n ln p / (ln 2)^2 bits for n ids and false positives p."""
    path, _, _ = ids
    hashed = session.read.text(path).where("value <> ''").selectExpr("xxhash64(value) as id").persist()
    try:
        items = max(hashed.count(), 1)
        bits = max(64, math.ceil(-items * math.log(false_positives) / math.log(2) ** 2))
        (row,) = hashed.selectExpr(f"{BLOOM_FILTER}(id, {items}L, {bits}L)").collect()
    finally:
        hashed.unpersist()
    return bytes(row[0])
