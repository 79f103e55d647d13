"""SQL names for expressions that Spark has and does not name; the runtime registers them with every session."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["BLOOM_FILTER", "MIGHT_CONTAIN", "SQL_NAMES", "TRY"]

TRY, BLOOM_FILTER, MIGHT_CONTAIN = "headgate_try", "headgate_bloom_filter", "headgate_might_contain"

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"

SQL_NAMES: Mapping[str, str] = {
    TRY: f"{_EXPRESSIONS}.TryEval",
    BLOOM_FILTER: f"{_EXPRESSIONS}.aggregate.BloomFilterAggregate",
    MIGHT_CONTAIN: f"{_EXPRESSIONS}.BloomFilterMightContain",
}
"""The class of each expression, by name: ``headgate_try(value)`` is null where ``value`` raises;
``headgate_bloom_filter(hash, items, bits)`` aggregates hashes into a Bloom filter, and
``headgate_might_contain(filter, hash)`` looks one up."""
