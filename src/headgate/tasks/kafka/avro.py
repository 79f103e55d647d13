"""Avro values."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from headgate.errors import InputError, missing_package
from headgate.tasks.kafka.schema_registry import SchemaRegistry, WrittenSchema, numbered

__all__ = ["avro_by_file", "avro_by_registry"]

ReadValue = Callable[[bytes], Any]


def avro_by_file(text: str) -> ReadValue:
    """What reads values that are written by one schema; raises :class:`InputError` for a text that is none."""
    library = _library()
    try:
        schema = library.parse_schema(json.loads(text))
    except (ValueError, library.schema.SchemaParseException, library.schema.UnknownType) as error:
        raise InputError("SOURCE_UNREADABLE", f"not an Avro schema: {error}") from None
    return lambda value: _read(value, schema)


def avro_by_registry(registry: SchemaRegistry) -> ReadValue:
    """What reads values that begin with the number of their schema."""
    _library()  # what is missing is no fault of a record

    def read(value: bytes) -> Any:
        number, rest = numbered(value)
        written = registry.schema(number)
        if written.kind != "AVRO":
            raise ValueError(f"schema {number} is {written.kind.capitalize()}, not Avro")
        return _read(rest, _parsed(written.text, tuple(_all_references(written))))

    return read


@lru_cache(maxsize=1_000)
def _parsed(text: str, references: tuple[str, ...]) -> Any:
    library = _library()
    named: dict[str, Any] = {}
    for one in references:
        library.parse_schema(json.loads(one), named_schemas=named)
    return library.parse_schema(json.loads(text), named_schemas=named)


def _all_references(written: WrittenSchema) -> list[str]:
    """The texts that a schema needs, each after those that it needs itself."""
    texts: list[str] = []
    for one in written.references.values():
        texts += [text for text in [*_all_references(one), one.text] if text not in texts]
    return texts


def _read(value: bytes, schema: Any) -> Any:
    stream = io.BytesIO(value)
    row = _library().schemaless_reader(stream, schema, None)
    if stream.tell() != len(value):
        raise ValueError(f"{len(value) - stream.tell()} bytes are left behind the value: another schema wrote it")
    return row


def _library() -> Any:
    try:
        import fastavro
    except ModuleNotFoundError as error:
        raise missing_package("MISSING_PACKAGE", "Avro values", error, "kafka") from None
    return fastavro
