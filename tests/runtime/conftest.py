"""One small Spark for the whole run; every query that a test leaves behind is stopped after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.engine import Engine
from headgate.runtime.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session("local[2]", {"spark.driver.memory": "2g"})
    yield session
    session.stop()


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    """An engine on an empty state directory, with a quick trigger."""
    made = Engine(tmp_path / "state", spark=spark, trigger_s=0.1)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def _no_query_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "spark" in request.fixturenames:
        for query in request.getfixturevalue("spark").streams.active:
            query.stop()
