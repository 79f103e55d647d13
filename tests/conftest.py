"""Settings of all tests, and one small Spark for the whole run; queries that a test leaves behind are stopped after it.

``HEADGATE_TEST_MASTER`` may name another Spark than a local one (see ``tests/runtime/engine/test_on_a_cluster.py``).
"""

from __future__ import annotations

import atexit
import contextlib
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
    """Start Spark without its second compiler, except in the slow tier, which measures.

    What commands print goes into a pipe of any width, wherever the tests run; xdist names the width of its terminal.
    """
    os.environ.pop("COLUMNS", None)
    if "not slow" in config.option.markexpr:
        for name in ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
            os.environ.setdefault(name, QUICK_JVM)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """With ``-n auto``: one process more than there are processors, where some tests wait for Spark."""
    return (os.cpu_count() or 1) + ("not spark" not in config.option.markexpr)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what waits longest: processes with a Spark of their own, then the Spark of this process.

    Processes of xdist get the tests file by file, in this order; what needs no Spark fills the gaps at the end.
    """
    ranks: dict[Path, int] = {}
    for item in items:
        rank = 0 if item.get_closest_marker("own_spark") else 1 if item.get_closest_marker("spark") else 2
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: ranks[item.path])


def pytest_sessionfinish() -> None:
    """End the broker and the database of this process; nobody waits for what it would do at exit."""
    if (services := sys.modules.get("tests.services")) is not None:
        services.end_services()


@atexit.register
def _print_no_more() -> None:
    """Let the summary be the last that is printed: DuckDB lists its own objects when the interpreter ends."""
    if "duckdb" in sys.modules:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from headgate.runtime.spark_internals.session import open_session
    from tests.runtime.place import MASTER, SETTINGS

    log = tmp_path_factory.getbasetemp() / "spark.log"
    # The folder in which Spark starts is where its workers look for modules; the first test may be in one of its own.
    with contextlib.chdir(Path(__file__).parent.parent):
        session = open_session(MASTER, {"spark.driver.memory": "2g", **SETTINGS}, log)
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
