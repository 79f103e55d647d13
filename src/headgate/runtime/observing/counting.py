"""Counting the rows that go into tasks and come out of them, in every epoch, by Spark's ``observe``.

What need not be counted is not: a task without a test passes as many rows as it gets, and the rows of an output are
counted by whoever writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from headgate.model.names import Signature

__all__ = ["Count", "Observed", "RowCounts", "Side", "Staged", "observed", "values"]

Side = Literal["in", "out", "errors"]

RowCounts = Counter[tuple[Signature, Side]]
"""Rows into tasks, out of them, and left out because they raised."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A count that Spark makes while the epoch's job runs."""

    observation: Observation
    name: str


@dataclass(frozen=True, slots=True)
class Staged:
    """A count of the rows of an output."""

    output: int


Count = Observed | Staged


def observed(frame: DataFrame, aggregates: Mapping[str, str]) -> tuple[DataFrame, Observation]:
    """A frame with some aggregates over its rows, by name, to be known when a job has run over it."""
    observation = Observation()
    return frame.observe(observation, *(_expression(text, name) for name, text in aggregates.items())), observation


@lru_cache(maxsize=10_000)
def _expression(text: str, name: str) -> Column:
    """Parsed once: the next epochs count the same."""
    return F.expr(f"{text} as {name}")


def values(counts: Iterable[Count], staged: Mapping[int, int]) -> dict[Count, int]:
    """What counts have come to, those aside that the job had no need to make."""
    rows: dict[int, Mapping[str, int]] = {}
    found: dict[Count, int] = {}
    for count in counts:
        if isinstance(count, Staged):
            found[count] = staged.get(count.output, 0)
            continue
        key = id(count.observation)
        if key not in rows:
            # Asked for before the job has come to it, an observation would wait for ever.
            java = count.observation._jo
            rows[key] = count.observation.get if java is not None and java.future().isCompleted() else {}
        if count.name in rows[key]:
            found[count] = int(rows[key][count.name])
    return found
