"""Counting the rows that go into tasks and come out of them, in every epoch, by Spark's ``observe``.

What need not be counted is not: a task without a test passes as many rows as it gets, the rows of an output are
counted by their writer, and so are all rows of a frame whose outputs are all there is to write.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.model.names import Signature

__all__ = ["Count", "JobCount", "Metrics", "OutputCount", "RowCounts", "Side", "observed", "values"]

Side = Literal["in", "out", "errors", "late"]

RowCounts = Counter[tuple[Signature, Side]]
"""Rows into tasks, out of them, and left out because they raised or came too late."""

Metrics = Mapping[str, tuple[int, ...]]
"""What a job has counted: the values of each observation, by its name."""


@dataclass(frozen=True, slots=True)
class JobCount:
    """A count that Spark makes while the epoch's job runs."""

    observation: str
    place: int
    """Which of the observation's aggregates it is."""


@dataclass(frozen=True, slots=True)
class OutputCount:
    """A count of the rows of an output, or of all that the stager sees."""

    output: int


Count = JobCount | OutputCount

_NUMBERS = itertools.count()


def observed(frame: DataFrame, aggregates: Mapping[str, str]) -> tuple[DataFrame, str]:
    """A frame with an observation, and its name: aggregates over the rows, known once a job has run."""
    observation = f"rows{next(_NUMBERS)}"
    return frame.observe(observation, *(_expression(text, name) for name, text in aggregates.items())), observation


@lru_cache(maxsize=10_000)
def _expression(text: str, name: str) -> Column:
    """Parsed once, since the next epochs count the same."""
    return F.expr(f"{text} as {name}")


def values(counts: Iterable[Count], staged: Mapping[int, int], metrics: Metrics) -> dict[Count, int]:
    """The values of counts, except those that the job did not need to compute."""
    counted: dict[Count, int] = {}
    for count in counts:
        if isinstance(count, OutputCount):
            counted[count] = staged.get(count.output, 0)
        elif count.observation in metrics:
            counted[count] = metrics[count.observation][count.place]
    return counted
