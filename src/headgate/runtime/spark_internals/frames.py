"""Private parts of PySpark's frames that need no session: they are used in Python workers too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

__all__ = ["arrow_schema", "observed_reader", "set_schema"]


def arrow_schema(schema: StructType) -> pa.Schema:
    """A Spark schema in Arrow's types, with times in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def set_schema(frame: DataFrame, schema: StructType) -> None:
    """Tell PySpark the schema of a frame, so that it does not fetch it from the JVM."""
    frame.__dict__["schema"] = schema


def observed_reader(observation: Observation) -> Callable[[int], int] | None:
    """Reads the values of an observation by their place; ``None`` if no job has computed them yet.

    The public ``get`` would wait for ever.
    """
    java: Any = observation._jo
    if java is None or not java.future().isCompleted():
        return None
    return java.getRow().getLong  # type: ignore[no-any-return]
