"""The Spark session, with defaults for many small micro-batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.runtime.exchange import ExchangeSource

__all__ = ["DEFAULTS", "open_session"]

_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
_STATE = "org.apache.spark.sql.execution.streaming.state"

DEFAULTS: Mapping[str, str] = {
    "spark.app.name": "headgate",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # Micro-batches are small and alike: planning them anew at each stage costs more than it finds.
    "spark.sql.adaptive.enabled": "false",
    # The default manager goes through a file-context that forks a process per file on Linux without native Hadoop.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stopTimeout": "60000",
}
"""Spark settings that the engine starts from; a user's own override them."""


def open_session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark, or join the session that this process has, and register the exchange with it."""
    # Workers must run the Python that this process runs, or they find other packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    found_by_setup = Path(sys.prefix) / "java-home"
    if found_by_setup.exists():
        os.environ.setdefault("JAVA_HOME", found_by_setup.read_text(encoding="utf-8").strip())
    builder = SparkSession.builder.master(master)
    if master.startswith("local"):
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in {**DEFAULTS, **(settings or {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(ExchangeSource)
    return spark
