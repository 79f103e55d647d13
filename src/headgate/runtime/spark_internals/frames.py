"""Private parts of PySpark's frames that need no session: they are used in Python workers too."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

__all__ = ["arrow_schema", "can_run_again", "from_arrow", "observed_metrics", "set_schema"]


def arrow_schema(schema: StructType) -> pa.Schema:
    """A Spark schema in Arrow's types, with times in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def from_arrow(schema: pa.Schema) -> StructType:
    """The Spark schema of columns in Arrow's types."""
    return from_arrow_schema(schema)


def set_schema(frame: DataFrame, schema: StructType) -> None:
    """Tell PySpark the schema of a frame, so that it does not fetch it from the JVM."""
    frame.__dict__["schema"] = schema


def can_run_again(frame: DataFrame) -> bool:
    """Whether a planned frame computes its rows anew whenever it is run.

    Shuffles, broadcasts and stored frames keep their rows; a query's time and its random seeds are fixed when it is
    planned.
    """
    execution: Any = frame._jdf.queryExecution()
    patterns = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
    analysed = execution.analyzed()
    if not analysed.deterministic() or analysed.containsPattern(patterns.CURRENT_LIKE()):
        return False
    planned: str = execution.executedPlan().toString()
    return not any(word in planned for word in ("Exchange", "AdaptiveSparkPlan", "InMemoryTableScan", "Subquery"))


def observed_metrics(frame: DataFrame) -> dict[str, tuple[int, ...]]:
    """The integers that the observations of a frame have counted in the last job that computed it, by name."""
    rows = frame._jdf.queryExecution().observedMetrics().iterator()
    metrics = {}
    while rows.hasNext():
        entry = rows.next()
        metrics[entry._1()] = tuple(int(value) for value in entry._2().mkString(",").split(",") if value != "null")
    return metrics
