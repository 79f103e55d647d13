"""Task types that make several rows of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from headgate.model.schema import Column, Schema
from headgate.model.task_type import ColumnName, Inputs, TaskConfig, TaskType
from headgate.model.work import FrameWork
from headgate.tasks.heavy import F
from headgate.tasks.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TYPES", "Explode", "Tokenise", "Unpivot"]


class Explode(TaskConfig):
    """Make one row of each element of an array or map column."""

    example: ClassVar[Mapping[str, Any]] = {"column": "readings", "into": "reading"}

    column: ColumnName = Field(description="The array column.")
    into: ColumnName | None = Field(
        None, description="The name of the element's column; that of the array if left out."
    )

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("column", [self.column])
        return inputs.passed_on(Column(self.into or self.column), dropped=[self.column])


def _explode(options: Explode, frames: Mapping[str, DataFrame]) -> DataFrame:
    frame = frames["in"]
    others = [F.col(quoted(name)) for name in frame.columns if name.casefold() != options.column.casefold()]
    return frame.select(*others, F.explode(F.col(quoted(options.column))).alias(options.into or options.column))


class Tokenise(TaskConfig):
    """Split a text into words, one row each."""

    example: ClassVar[Mapping[str, Any]] = {"column": "text"}

    column: ColumnName = Field("value", description="The text column.")
    into: ColumnName = Field("word", description="The name of the word's column.")
    pattern: str = Field(
        r"\W+", min_length=1, max_length=512, description="Regular expression of what lies between words."
    )
    lower: bool = Field(True, description="Whether to turn words into lower case.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("column", [self.column])
        return inputs.passed_on(Column(self.into, "string"))


def _tokenise(options: Tokenise, frames: Mapping[str, DataFrame]) -> DataFrame:
    frame = frames["in"]
    text = F.col(quoted(options.column))
    words = F.split(F.lower(text) if options.lower else text, options.pattern)
    others = [F.col(quoted(name)) for name in frame.columns if name.casefold() != options.into.casefold()]
    return frame.select(*others, F.explode(words).alias(options.into)).where(f"{quoted(options.into)} <> ''")


class Unpivot(TaskConfig):
    """Make one row of each of some columns: the column's name and its value, with the other columns beside."""

    example: ClassVar[Mapping[str, Any]] = {"columns": ["temperature", "humidity"]}

    columns: tuple[ColumnName, ...] = Field(min_length=1, description="The columns, all of one type.")
    field: ColumnName = Field("field", description="The name of the column for a column's name.")
    value: ColumnName = Field("value", description="The name of the column for its value.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        value = Column(self.value, inputs.type_of(self.columns[0]))
        return inputs.passed_on(Column(self.field, "string"), value, dropped=self.columns)


def _unpivot(options: Unpivot, frames: Mapping[str, DataFrame]) -> DataFrame:
    frame = frames["in"]
    gone = {name.casefold() for name in (*options.columns, options.field, options.value)}
    others = [F.col(quoted(name)) for name in frame.columns if name.casefold() not in gone]
    pairs = [F.struct(F.lit(n).alias("field"), F.col(quoted(n)).alias("value")) for n in options.columns]
    made = frame.select(*others, F.explode(F.array(*pairs)).alias("__pair"))
    kept = [F.col(quoted(name)) for name in made.columns if name != "__pair"]
    return made.select(*kept, F.col("__pair.field").alias(options.field), F.col("__pair.value").alias(options.value))


TYPES = (
    TaskType("explode", Explode, work=FrameWork(_explode, carries=True)),
    TaskType("unpivot", Unpivot, work=FrameWork(_unpivot, carries=True)),
    TaskType("tokenise", Tokenise, work=FrameWork(_tokenise, carries=True)),
)
