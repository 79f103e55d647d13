"""The task type bloom_filter: pass the rows whose id may be in a set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from headgate.model.schema import Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, TaskConfig, TaskType
from headgate.model.work import ArrowForm, BatchFunction, BatchResult, FrameWork
from headgate.tasks.batch import all_of, column_of, replaced
from headgate.tasks.heavy import F, np, pa, pc
from headgate.tasks.lookup import version_of
from headgate.tasks.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TYPES", "BloomFilter"]


class BloomFilter(TaskConfig):
    """Pass the rows whose id may be in a set, by a Bloom filter over the ids of a file.

    No row of the set is lost; of the others a share passes, which is about ``false_positives``. The file has an id a
    line, and is read again when it has changed.
    """

    example: ClassVar[Mapping[str, Any]] = {"column": "source", "ids": "data/sensor_ids.txt"}

    column: ColumnName = Field(description="The column of the id.")
    ids: str = Field(min_length=1, description="Path of the file of ids.")
    false_positives: float = Field(0.01, gt=0, lt=1, description="The share of other ids that may pass.")
    nulls: tuple[ColumnName, ...] = Field(
        (), description="If given, all rows pass, and these columns are null where the id is not in the set."
    )

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("column", [self.column])
        inputs.check_columns("nulls", self.nulls)
        return {OUT: inputs.rows()}


def _bloom_filter(options: BloomFilter, frames: Mapping[str, DataFrame]) -> DataFrame:
    frame = frames["in"]
    from headgate_riotbench.membership import may_be_in

    member = may_be_in(frame, options.column, version_of(options.ids), options.false_positives)
    if not options.nulls:
        return frame.where(member)
    blank = {name.casefold() for name in options.nulls}
    return frame.select(
        *(
            F.when(member, F.col(quoted(name))).alias(name) if name.casefold() in blank else F.col(quoted(name))
            for name in frame.columns
        )
    )


def _bloom_filter_batch(options: BloomFilter) -> BatchFunction:
    from headgate_riotbench.membership import few_ids

    def work(batch: pa.RecordBatch) -> BatchResult:
        known = few_ids(version_of(options.ids))
        assert known is not None
        member = pc.is_in(column_of(batch, options.column), value_set=pa.array(known, pa.string()))
        if options.nulls:
            return BatchResult(
                replaced(batch, [(n, pc.if_else(member, column_of(batch, n), None)) for n in options.nulls])
            )
        return BatchResult(batch.filter(member).columns, np.flatnonzero(member.to_numpy(zero_copy_only=False)))

    return work


def _bloom_filter_fits(options: BloomFilter, types: Mapping[str, str]) -> bool:
    from headgate_riotbench.membership import few_ids

    return all_of(types, [options.column], ["string"]) and few_ids(version_of(options.ids)) is not None


TYPES = (
    TaskType(
        "bloom_filter",
        BloomFilter,
        work=FrameWork(_bloom_filter, carries=True, arrow=ArrowForm(_bloom_filter_batch, _bloom_filter_fits)),
        package="headgate-riotbench",
    ),
)
