"""Task types that handle files: up- and download, zip archives, charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, PositiveInt, model_validator

from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, TaskConfig, TaskType

__all__ = ["TYPES", "Download", "Plot", "Upload", "Zip"]

FOLDER = "Folder, or the URL of one that Arrow knows: file, s3, gs, hdfs."


class Upload(TaskConfig):
    """Store each row's content as a file, and pass on where it is.

    A file appears whole, and one of its name is replaced, so doing it again does no harm. The content's column is left
    out of what is passed on.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "folder": "out/models",
        "name": "model",
        "content": "json",
        "ending": ".json",
    }

    folder: str = Field(min_length=1, description=FOLDER)
    name: ColumnName = Field(description="The column of the file's name, without folders.")
    ending: str = Field("", max_length=32, pattern=r"^[A-Za-z0-9._-]*$", description="Added to the name.")
    content: ColumnName = Field(description="The column of the content, a text or bytes.")
    into: ColumnName = Field("path", description="The name of the column that tells where the file is.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("name", [self.name])
        inputs.check_columns("content", [self.content])
        rows = inputs.rows()
        if rows is None:
            return {OUT: None}
        kept = Schema(tuple(c for c in rows.columns if c.name.casefold() != self.content.casefold()))
        return {OUT: kept.with_column(Column(self.into, "string"))}


class Download(TaskConfig):
    """Fetch for each row the file that it names. A file that is not there is an error of its row."""

    example: ClassVar[Mapping[str, Any]] = {"folder": "out/models", "name": "path", "into": "content"}

    folder: str = Field(min_length=1, description=FOLDER)
    name: ColumnName = Field(description="The column of the file's name, in that folder or below it.")
    into: ColumnName = Field("content", description="The name of the column of the content, bytes.")
    most_bytes: PositiveInt = Field(100_000_000, description="A file of more bytes is an error of its row.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("name", [self.name])
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "binary")) if rows else None}


class Zip(TaskConfig):
    """Pack the contents of rows into zip archives, so many to one; what is left of a micro-batch makes a last one.

    The same rows make the same bytes. An archive is named after its first entry.
    """

    example: ClassVar[Mapping[str, Any]] = {"name": "chart", "content": "picture", "size": 10}

    name: ColumnName = Field(description="The column of the entry's name.")
    content: ColumnName = Field(description="The column of the entry's content, a text or bytes.")
    size: PositiveInt = Field(10, description="How many entries an archive has.")
    into: ColumnName = Field("archive", description="The name of the column of the archive, bytes.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("name", [self.name])
        inputs.check_columns("content", [self.content])
        return {OUT: Schema((Column("name", "string"), Column("entries", "int"), Column(self.into, "binary")))}


class Plot(TaskConfig):
    """Draw each row as a chart of several lines. A line is a column that holds an array of numbers."""

    example: ClassVar[Mapping[str, Any]] = {"lines": ["temperature", "smoothed"], "title": "sensor"}

    lines: tuple[ColumnName, ...] = Field(min_length=1, description="The columns of the lines' values, arrays.")
    x: ColumnName | None = Field(None, description="The column of the places on the axis; 0, 1, 2 if left out.")
    title: ColumnName | None = Field(None, description="The column of the chart's title.")
    y_label: str = Field("", max_length=128, description="What the values are.")
    format: Literal["svg", "png"] = Field("svg", description="The form of the picture.")
    into: ColumnName = Field("chart", description="The name of the picture's column, bytes.")

    @model_validator(mode="after")
    def _not_too_many(self) -> Plot:
        if len(self.lines) > 20:
            raise ValueError(f"{len(self.lines)} lines in one chart: nobody could tell more than 20 apart")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("lines", self.lines)
        inputs.check_columns("x", [] if self.x is None else [self.x])
        inputs.check_columns("title", [] if self.title is None else [self.title])
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "binary")) if rows else None}


TYPES = (
    TaskType("upload", Upload),
    TaskType("download", Download),
    TaskType("zip", Zip, batchwise=True),
    TaskType("plot", Plot),
)
