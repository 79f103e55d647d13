"""The Spark session, with defaults for many small micro-batches."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError
from headgate.runtime.engine.masters import check_master, is_local, settings_for
from headgate.runtime.exchange.files import ExchangeSource
from headgate.runtime.file_source.source import FileSource
from headgate.runtime.kafka_source.source import KafkaSource
from headgate.runtime.spark_internals.forked_python import forked_python
from headgate.runtime.spark_internals.internals import internals
from headgate.runtime.table_source.source import TableSource
from headgate.store.files import scratch_of

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
    # Micro-batches are small and similar: adaptive planning costs more than it gains.
    "spark.sql.adaptive.enabled": "false",
    # The default manager goes through a file-context that forks a process per file on Linux without native Hadoop.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stopTimeout": "60000",
    # A task that asks for more memory than there is fails like any other: the JVM need not end for it.
    "spark.executor.killOnFatalError.depth": "0",
    # How large Bloom filters may become; Spark's own limits suit a few million ids.
    "spark.sql.optimizer.runtime.bloomFilter.maxNumItems": "1000000000",
    "spark.sql.optimizer.runtime.bloomFilter.maxNumBits": "8000000000",
}
"""Spark settings that the engine starts from; a user's own override them."""


FORCED: Mapping[str, str] = {
    # Or ${env:NAME} in a SQL text would be a variable of the environment.
    "spark.sql.variable.substitute": "false",
}
"""Spark settings that nobody can change, because texts of users are trusted to mean what was checked."""

STACK = "-Xss8m"
"""How deep Spark's recursion over an expression may go; a thread takes what it uses of it."""

NEVER = ("java_method", "reflect", "try_reflect")
"""Functions that SQL does not have here: they run Java code."""


READER_SETS = ("SPARK_LOCAL_DIRS", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE", "SPARK_PYTHON_RUNTIME")
"""What Spark sets for every worker, whatever is there. It does so too, when a query begins to read the exchange, in the
one map that all readers share; a name that is new there spoils a task of another query that is being written out.
"""


def open_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, log: Path | None = None
) -> SparkSession:
    """Start Spark, or join the session that this process has, and register with it what the engine needs.

    What Spark's process and its workers print goes to the file ``log``, or where this process prints if there is none.
    """
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        # They print, as JSON and with Java's whole stack, what is raised anyway.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    # So does Py4J, when Spark's process dies.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)
    AccumulatorTCPServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    # Workers must run the Python that this process runs, or they find other packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    java_home = Path(sys.prefix) / "java-home"
    if java_home.exists():
        os.environ.setdefault("JAVA_HOME", java_home.read_text(encoding="utf-8").strip())
    check_master(master, settings or {})
    # Other machines do not have the program, and who names a Python wants that one.
    python = forked_python() if is_local(master) and os.environ["PYSPARK_PYTHON"] == sys.executable else None
    # Other machines may not have this package; that is checked later.
    here = {"spark.python.daemon.module": "headgate.runtime.spark_internals.daemon"} if is_local(master) else {}
    wanted = {"spark.master": master, **DEFAULTS, **here, **settings_for(master), **(settings or {}), **FORCED}
    if log is not None:
        _start_process(SparkConf().setAll(list(wanted.items())), log)
    builder = SparkSession.builder
    for name, value in wanted.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.pythonExec = python or spark.sparkContext.pythonExec
    for name in READER_SETS:
        spark.sparkContext.environment.setdefault(name, "")
    internals(spark).register_functions()
    internals(spark).unregister_functions(NEVER)
    spark.dataSource.register(ExchangeSource)
    spark.dataSource.register(FileSource)
    spark.dataSource.register(KafkaSource)
    spark.dataSource.register(TableSource)
    return spark


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _start_process(conf: SparkConf, log: Path) -> None:
    """Start Spark's process, unless there is one, with its output in a file.

    Only that process gets the file, so what this one prints still goes to the terminal. It is opened for appending, so
    that it can be truncated while Spark writes.
    """
    if SparkContext._gateway is not None:
        return
    scratch = _emptied(scratch_of(log.parent))
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{options} {STACK} -Djava.io.tmpdir={scratch}".strip()
    with log.open("a", encoding="utf-8") as file:
        before = file.tell()
        try:
            gateway = launch_gateway(conf, {"stdout": file, "stderr": file})  # type: ignore[no-untyped-call]
        except (PySparkRuntimeError, OSError) as error:
            message = f"Spark did not start: {_last_words(log, before) or error}; see {log}"
            raise HeadgateError("SPARK_DID_NOT_START", message) from None
        finally:
            os.environ["SPARK_SUBMIT_OPTS"] = options
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _emptied(folder: Path) -> Path:
    """The folder, new; or another one if somebody else has it."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return Path(tempfile.mkdtemp(prefix="headgate-"))
    return folder


def _last_words(log: Path, before: int) -> str:
    said = log.read_bytes()[before:].decode("utf-8", "replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    signs = ("error", "exception", "java_home", "not found", "no such file")
    telling = [line for line in lines if any(sign in line.lower() for sign in signs)]
    return (telling or lines or [""])[0][:300]
