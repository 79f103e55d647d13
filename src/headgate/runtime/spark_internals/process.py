"""The Spark that an engine uses: checked while it runs, and stopped if the engine has started it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError
from headgate.runtime.spark_internals.internals import internals

__all__ = ["SparkProcess", "spark_crashed", "spark_end"]

LOG_BYTES = 8_000_000
"""The size at which Spark's log is rotated; one older log is kept."""


@dataclass(frozen=True, slots=True)
class SparkProcess:
    """A session, and whether the engine has started it."""

    session: SparkSession
    started: bool
    log: Path
    """Spark's log, if the engine has started it."""

    def check(self) -> None:
        """Raise when a Spark that the engine has started has ended, or its master has ended it."""
        context = self.session.sparkContext
        process = internals(self.session).jvm_process()
        if self.started and process is not None and process.poll() is not None:
            message = f"Spark's process has ended. See {self.log}. Restart the engine to resume."
            raise HeadgateError("SPARK_GONE", message)
        if self.started and not (context.master or "").startswith("local") and internals(self.session).is_stopped():
            message = f"Lost the connection to the Spark master. See {self.log}. Restart the engine to resume."
            raise HeadgateError("SPARK_GONE", message)

    def trim_log(self) -> None:
        """Keep its log from filling the disk; Spark appends, so the file may be truncated."""
        if self.started and self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            with suppress(OSError):  # on a full disk there is no older log
                shutil.copyfile(self.log, self.log.with_name("spark.log.1"))
            os.truncate(self.log, 0)

    def stop(self) -> None:
        """Stop it, if the engine has started it."""
        if self.started:
            self.session.stop()


CRASHES = (4, 6, 7, 8, 11)
"""Signals that a process gets for what it does itself: abort, segmentation fault and the like."""


def spark_crashed() -> bool:
    """Whether the JVM that this process has started has ended without anybody wanting it: it was not killed."""
    process = getattr(SparkContext._gateway, "proc", None)
    status = None if process is None else process.poll()
    return status is not None and (status > 0 or -status in CRASHES)


def spark_end() -> str | None:
    """How the JVM that this process has started has ended; ``None`` while it lives, or if there is none."""
    process = getattr(SparkContext._gateway, "proc", None)
    status = None if process is None else process.poll()
    if status is None:
        return None
    return f"Spark's process {f'was killed by signal {-status}' if status < 0 else f'ended with status {status}'}"
