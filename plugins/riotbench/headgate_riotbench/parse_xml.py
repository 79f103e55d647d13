"""The task type parse_xml: XML documents into columns."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field, model_validator

from headgate.model.schema import Schema
from headgate.model.task_type import ColumnName, TaskType
from headgate.model.work import BatchFunction, BatchResult, BatchTarget, BatchWork
from headgate.tasks.batch import replaced
from headgate.tasks.heavy import np, pa
from headgate_riotbench.parsed import ParserConfig, reason_of, texts_of, typed_columns
from headgate_riotbench.records import Failed, arrow_kinds

__all__ = ["ParseXml", "parse_xml"]


class ParseXml(ParserConfig):
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


def parse_xml(options: ParseXml, target: BatchTarget | None = None) -> BatchFunction:
    """The work of a parse_xml task.

    >>> work = parse_xml(ParseXml(columns="id bigint, name string", each="city", paths={"id": "@id"}))
    >>> made = work(
    ...     pa.record_batch({"value": ['<all><city id="1"><name>Ulm</name></city><city id="2"/></all>', "<a>"]})
    ... )
    >>> [column.to_pylist() for column in made.columns], made.failed
    ([[1, 2], ['Ulm', None]], [(1, 'no XML: no element found: line 1, column 3')])
    """
    del target
    fields = arrow_kinds(options.columns)
    paths = [_path(options.paths.get(name, name)) for name, _ in fields]
    required = [at for at, (name, _) in enumerate(fields) if name in options.required]

    def work(batch: pa.RecordBatch) -> BatchResult:
        failed: Failed = {}
        rows: list[Sequence[Any]] = []
        origin: list[int] = []
        for place, text in enumerate(texts_of(batch, options.column)):
            try:
                elements = [[_at(element, *path) for path in paths] for element in _elements(text, options)]
                for row in elements:
                    lacking = next((fields[at][0] for at in required if row[at] in (None, "")), None)
                    if lacking is not None:
                        raise ValueError(f"it lacks {lacking}")
            except (ValueError, ElementTree.ParseError) as error:
                failed[place] = f"no XML: {reason_of(error)}"
                continue
            rows += elements
            origin += [place] * len(elements)
        unfit: Failed = {}
        columns = typed_columns(rows, fields, unfit)
        for at, reason in unfit.items():
            failed.setdefault(origin[at], f"no XML: {reason}")
        places = np.array(origin, np.int64)
        kept = np.flatnonzero(~np.isin(places, np.fromiter(failed, np.int64, len(failed))))
        here, from_rows = pa.array(kept), places[kept]
        new = [(name, array.take(here)) for name, array in columns]
        if not options.keep:
            return BatchResult([array for _, array in new], from_rows, sorted(failed.items()))
        kept_columns = replaced(batch.take(pa.array(from_rows)), new, [options.column])
        return BatchResult(kept_columns, from_rows, sorted(failed.items()))

    return work


def _path(text: str) -> tuple[str, str | None]:
    """A path as that of an element and an attribute of it."""
    element, mark, attribute = text.rpartition("@")
    return (element.rstrip("/") or ".", attribute) if mark else (text, None)


def _elements(text: bytes | None, options: ParseXml) -> Iterator[ElementTree.Element]:
    if text is None:
        raise ValueError("there is nothing")
    if len(text) > options.longest:
        raise ValueError(f"it has {len(text)} bytes, and {options.longest} are allowed")
    if b"<!DOCTYPE" in text:
        raise ValueError("it declares a document type")
    root = ElementTree.fromstring(text)  # noqa: S314  (without a document type there are no entities)
    return iter([root]) if options.each is None else root.iterfind(options.each)


def _at(element: ElementTree.Element, path: str, attribute: str | None) -> str | None:
    match = element if path == "." else element.find(path)
    if match is None:
        return None
    return match.get(attribute) if attribute is not None else (match.text or "").strip()


PARSE_XML = TaskType("parse_xml", ParseXml, package="headgate-riotbench", work=BatchWork(parse_xml))
