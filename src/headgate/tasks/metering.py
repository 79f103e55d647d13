"""How functions that run in Spark's Python workers are wrapped, for those who want to measure them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar

import pyarrow as pa

__all__ = ["METER", "Run", "metered"]

Run = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

METER: ContextVar[Callable[[Run], Run] | None] = ContextVar("METER", default=None)
"""Set where work is built to be measured; ordinarily functions run as they are."""


def metered(run: Run) -> Run:
    """A function to be run in workers, wrapped if somebody measures."""
    meter = METER.get()
    return run if meter is None else meter(run)
