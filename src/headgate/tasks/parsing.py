"""Task types that take records apart and put them together: SenML and XML in, SenML out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from headgate.errors import BadValue, shorten
from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, SchemaText, TaskConfig, TaskType

__all__ = ["TYPES", "ParseSenml", "ParseXml", "ToSenml"]


def _checked_date(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise BadValue(f"{shorten(text)} is not a date", "such as 2026-01-01") from None
    return text


DateText = Annotated[str, AfterValidator(_checked_date)]


class _Parsed(TaskConfig):
    """What all parsers have: the text, the columns that are made of it, and what else stays."""

    column: ColumnName = Field("value", description="The column that holds the text.")
    columns: SchemaText = Field(
        description="The fields to take out, as columns: string, double, float, int, bigint, boolean, timestamp."
    )
    required: tuple[ColumnName, ...] = Field((), description="Fields that a record must have.")
    longest: PositiveInt = Field(1_000_000, description="The most bytes that a record may have.")
    keep: bool = Field(False, description="Whether the other columns stay; the text itself does not.")

    @model_validator(mode="after")
    def _required_are_columns(self) -> _Parsed:
        names = {column.name for column in self.made().columns}
        missing = [name for name in self.required if name not in names]
        if missing:
            raise ValueError(f"required names '{missing[0]}', which is not among the columns")
        return self

    def made(self) -> Schema:
        """The columns that are made of the text."""
        return Schema.parse(self.columns)

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("column", [self.column])
        rows = inputs.rows()
        if not self.keep or rows is None:
            return {OUT: None if self.keep else self.made()}
        kept = Schema(tuple(c for c in rows.columns if c.name.casefold() != self.column.casefold()))
        for new in self.made().columns:
            kept = kept.with_column(new)
        return {OUT: kept}


class ParseSenml(_Parsed):
    """Parse a SenML record into columns, one for each measurement.

    A record is ``{"bt": 1422748800000, "e": [{"n": "temperature", "u": "far", "v": "8"}, ...]}``: ``v`` holds numbers,
    also written as texts, ``sv`` or ``vs`` texts, ``bv`` or ``vb`` truths; ``bt`` is in milliseconds since 1970. What
    stands before the first brace, as in RIoTBench's files, is passed over. A record that is no SenML, lacks a required
    field, has another unit than ``units`` says, a time outside the limits, a value of another type, or is too long,
    goes where ``on_error`` says.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "columns": "source string, temperature double, humidity double",
        "required": ["source"],
        "units": {"temperature": "far"},
    }

    time: ColumnName | None = Field("time", description="The name of the column for the record's time, bt.")
    units: dict[ColumnName, str] = Field(default_factory=dict, description="The unit that a field must have, if any.")
    earliest: DateText = Field("1970-01-01", description="A time before this is out of range.")
    latest: DateText = Field("2100-01-01", description="A time from this on is out of range.")

    def made(self) -> Schema:
        fields = Schema.parse(self.columns)
        return fields if self.time is None else Schema((Column(self.time, "timestamp"), *fields.columns))


class ParseXml(_Parsed):
    """Parse an XML document into columns, as one row or as one for each of some elements.

    A field is the text of the element of its name, below the document's root or below each element that ``each`` finds;
    ``paths`` names others: ``name/first`` an element further down, ``@id`` an attribute, ``name/@lang`` that of an
    element, ``.`` the element itself. A document that is not well-formed, declares a document type, lacks a required
    field, has a value of another type, or is too long, goes where ``on_error`` says.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "columns": "roll bigint, firstname string, marks double",
        "each": "student",
        "paths": {"roll": "@rollno"},
    }

    each: str | None = Field(None, min_length=1, max_length=512, description="One row of each element found by this.")
    paths: dict[ColumnName, str] = Field(default_factory=dict, description="Where to find a field, by its column.")

    @model_validator(mode="after")
    def _paths_are_of_columns(self) -> ParseXml:
        names = set(Schema.parse(self.columns).names)
        unknown = [name for name in self.paths if name not in names]
        if unknown:
            raise ValueError(f"paths names '{unknown[0]}', which is not among the columns")
        return self


class ToSenml(TaskConfig):
    """Put columns together as a SenML record; what is null is left out of it."""

    example: ClassVar[Mapping[str, Any]] = {
        "time": "time",
        "texts": {"source": "string"},
        "values": {"temperature": "far", "humidity": "per"},
    }

    time: ColumnName | None = Field(None, description="The column of the record's time, a timestamp.")
    texts: dict[ColumnName, str] = Field(default_factory=dict, description="Columns of texts, each with its unit.")
    values: dict[ColumnName, str] = Field(default_factory=dict, description="Columns of numbers, each with its unit.")
    into: ColumnName = Field("value", description="The name of the record's column.")
    keep: bool = Field(False, description="Whether the other columns stay.")

    @model_validator(mode="after")
    def _has_fields(self) -> ToSenml:
        if not self.texts and not self.values:
            raise ValueError("neither texts nor values: name the columns to put into the record")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("time", [] if self.time is None else [self.time])
        inputs.check_columns("texts", self.texts)
        inputs.check_columns("values", self.values)
        made = Column(self.into, "string")
        rows = inputs.rows()
        if not self.keep:
            return {OUT: Schema((made,))}
        return {OUT: rows.with_column(made) if rows else None}


TYPES = (
    TaskType("parse_senml", ParseSenml),
    TaskType("parse_xml", ParseXml),
    TaskType("to_senml", ToSenml),
)
