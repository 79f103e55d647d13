"""Deliveries: the rows of an epoch for a sink, once per (sink, fragment, epoch), whatever happens in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.work import SinkContext, SinkWork
from headgate.runtime.compile.plan import CompiledTask
from headgate.runtime.io.secret_options import used_options
from headgate.store.durable_steps import step

__all__ = ["MemorySink", "StagedDelivery", "deliver", "form_of"]


@dataclass(frozen=True, slots=True)
class StagedDelivery:
    """The rows of one epoch of one fragment for one sink, in staged files.

    An epoch that holds rows of several snapshots makes a delivery for each.
    """

    fragment: str
    epoch: int
    snapshot: int
    files: Sequence[tuple[str, int]]

    @property
    def origin(self) -> str:
        """Where the rows come from; with the epoch it identifies a delivery to one sink."""
        return f"{self.fragment}-{self.snapshot}"

    @property
    def rows(self) -> int:
        return sum(count for _, count in self.files)

    def table(self) -> pa.Table:
        """The rows, from Arrow files."""
        tables = []
        for path, _ in self.files:
            with pa.OSFile(path) as file:
                tables.append(pa.ipc.open_file(file).read_all())
        return pa.concat_tables(tables)


class MemorySink:
    """What sinks of type write_memory keep, by name."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[tuple[int, str], pa.Table]] = {}

    def put(self, name: str, delivery: StagedDelivery) -> None:
        self._kept.setdefault(name, {})[delivery.epoch, delivery.origin] = delivery.table()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows kept under a name, in the order of epochs."""
        return [row for _, table in sorted(self._kept.get(name, {}).items()) for row in table.to_pylist()]

    def epochs(self, name: str) -> dict[tuple[int, str], pa.Table]:
        return dict(self._kept.get(name, {}))


def form_of(task: CompiledTask) -> str:
    """The form in which the workers stage the rows of a sink."""
    assert isinstance(task.work, SinkWork)
    return task.work.form(task.options)


def deliver(task: CompiledTask, delivery: StagedDelivery, spark: SparkSession, memory: MemorySink) -> None:
    """Hand an epoch's rows over to a sink."""
    assert isinstance(task.work, SinkWork)
    with step("delivery"), used_options(task) as options:
        task.work.write(options, delivery, SinkContext(spark, memory, task.name, task.signature))
