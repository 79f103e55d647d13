"""Tasks whose state Spark itself keeps: windows and joins of streams."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from headgate.errors import InputError
from headgate.model.work import FrameWork
from headgate.runtime.compile.plan import CompiledTask
from headgate.runtime.spark_internals.internals import internals

__all__ = ["native_stream", "run_native"]


def native_stream(task: CompiledTask, sides: Sequence[DataFrame]) -> DataFrame:
    """The stream of a window or join task; raises :class:`InputError` for what Spark does not do on streams.

    Spark itself says so only when the query is started, which is too late to leave everything as it was.
    """
    try:
        stream = run_native(task, sides)
        internals(stream.sparkSession).check_streaming(stream)
    except PySparkException as error:
        reason = " ".join(str(error).split("\n")[0].split())[:300]
        raise InputError("TASK_REFUSED", f"task '{task.name}': Spark does not accept it: {reason}") from None
    return stream


def run_native(task: CompiledTask, sides: Sequence[DataFrame]) -> DataFrame:
    """What a task of state native makes of its inputs, one frame for each side."""
    assert isinstance(task.work, FrameWork)
    return task.work.run(task.options, {f"in.{side}": frame for side, frame in enumerate(sides)})  # type: ignore[no-any-return]
