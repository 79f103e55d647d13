"""Settings of all tests, and one small Spark for the whole run; queries that a test leaves behind are stopped after it.

``HEADGATE_TEST_MASTER`` may name another Spark than a local one (see ``tests/runtime/engine/test_on_a_cluster.py``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.runtime.engine.engine import Engine

# Generated inputs are many and cheap; how long one of them may take is asserted where it matters.
settings.register_profile(
    "headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("headgate")

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC"
"""A short-lived JVM spends half its time in the second compiler; the first alone has a small code cache by default."""


def pytest_configure(config: pytest.Config) -> None:
    """Start Spark without its second compiler, except in the slow tier, which measures."""
    if "not slow" in config.option.markexpr:
        os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JVM)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):  # a process of xdist, which ends before the summary
        _print_no_more()


def pytest_unconfigure() -> None:
    _print_no_more()


def _print_no_more() -> None:
    """Let the summary be the last that is printed: DuckDB lists its own objects when the interpreter ends."""
    if "duckdb" in sys.modules:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from headgate.runtime.spark_internals.session import open_session
    from tests.runtime.place import MASTER, SETTINGS

    session = open_session(MASTER, {"spark.driver.memory": "2g", **SETTINGS})
    yield session
    session.stop()


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    """An engine on an empty state directory, with a quick trigger."""
    from headgate.runtime.engine.engine import Engine

    made = Engine(tmp_path / "state", spark=spark, trigger_s=0.1)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def _no_query_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "spark" in request.fixturenames:
        for query in request.getfixturevalue("spark").streams.active:
            query.stop()
