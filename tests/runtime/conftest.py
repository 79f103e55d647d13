"""One small Spark for the whole run; every query that a test leaves behind is stopped after it.

``HEADGATE_TEST_MASTER`` may name another Spark than a local one (see ``tests/runtime/test_on_a_cluster.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.engine.engine import Engine
from headgate.runtime.spark_internals.session import open_session
from tests.runtime.place import MASTER, SETTINGS


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session(MASTER, {"spark.driver.memory": "2g", **SETTINGS})
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
