"""The session that engines run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.engine.engine import Engine
from headgate.runtime.exchange.files import ExchangeSource
from headgate.runtime.spark_internals.session import READER_SETS
from tests.runtime.small import files, flow, memory, numbered, put

pytestmark = pytest.mark.spark


def test_reading_the_exchange_adds_nothing_to_the_map_that_tasks_are_written_with(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A map that grows while a task of another query is written out makes a task that cannot be read."""
    state: Any = spark._jsparkSession.sessionState()
    shared = state.dataSourceManager().lookupDataSource(ExchangeSource.name()).dataSourceCls().envVars()
    before = {str(name) for name in shared.keySet()}
    put(tmp_path / "in", "0", numbered(0, 20))
    source = {"id": "src", **files(tmp_path / "in")}
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.submit(flow("counts", source, {"type": "count", "config": {"key": ["k"]}}, memory("counts")))
        engine.wait_until_idle()
    assert set(READER_SETS) <= before == {str(name) for name in shared.keySet()}
    assert shared.get("SPARK_LOCAL_DIRS"), "Spark has set it there: this is the map in question"
