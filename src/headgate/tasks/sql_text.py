"""Pieces of Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.model.work import RowWise

__all__ = [
    "BLOOM_FILTER",
    "MIGHT_CONTAIN",
    "SQL_NAMES",
    "TRY",
    "equal_keys",
    "escaped",
    "joined_columns",
    "quoted",
    "with_columns",
]

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


def quoted(name: str) -> str:
    """A column's name as SQL wants it.

    >>> quoted("the `city`")
    '`the ``city```'
    """
    return "`" + name.replace("`", "``") + "`"


def escaped(text: str) -> str:
    """A text as it is written between single quotes.

    >>> escaped("it's")
    "it\\\\'s"
    """
    return text.replace("\\", "\\\\").replace("'", "\\'")


def with_columns(names: Sequence[str], new: Mapping[str, str]) -> RowWise:
    """The old columns, those of a new one's name replaced in place, the other new ones at the end.

    >>> with_columns(["a", "b"], {"A": "a + 1", "c": "b"}).columns
    (('A', 'a + 1'), ('b', '`b`'), ('c', 'b'))
    """
    by_folded = {name.casefold(): (name, expression) for name, expression in new.items()}
    columns = [by_folded.pop(name.casefold(), (name, quoted(name))) for name in names]
    columns += by_folded.values()
    return RowWise(tuple(name for name, _ in columns), columns=tuple(columns))


def equal_keys(keys: Sequence[str]) -> str:
    """Whether rows ``l`` and ``r`` have the same key."""
    return " and ".join(f"l.{quoted(name)} = r.{quoted(name)}" for name in keys)


def joined_columns(left: Sequence[str], right: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The columns of rows ``l`` and ``r`` that are joined, named as :meth:`~headgate.model.schema.Schema.joined` does.

    >>> joined_columns(["k", "a"], ["k", "A"], ["K"])
    ['l.`k`', 'l.`a`', 'r.`A` as `right_A`']
    """
    known, taken = ({name.casefold() for name in names} for names in (keys, left))
    added = [
        (name, f"right_{name}" if name.casefold() in taken else name) for name in right if name.casefold() not in known
    ]
    return [*(f"l.{quoted(name)}" for name in left), *(f"r.{quoted(name)} as {quoted(new)}" for name, new in added)]
