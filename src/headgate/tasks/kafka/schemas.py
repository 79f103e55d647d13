"""How the values of a source are read that have a schema."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from headgate.errors import InputError
from headgate.tasks.kafka.avro import avro_by_file, avro_by_registry
from headgate.tasks.kafka.protobuf import protobuf_by_file, protobuf_by_registry
from headgate.tasks.kafka.read import ReadKafka
from headgate.tasks.kafka.schema_registry import SchemaRegistry
from headgate.tasks.kafka.values import ReadValue

__all__ = ["check_schema", "value_reader"]


def value_reader(options: ReadKafka) -> ReadValue | None:
    """What reads a value; ``None`` for formats without a schema. Raises :class:`InputError` for a bad schema."""
    if options.schema_file is not None:
        path = Path(options.schema_file)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            message = f"the schema file '{options.schema_file}' cannot be read ({error}); correct the path"
            raise InputError("SOURCE_UNREADABLE", message) from None
        try:
            if options.format == "avro":
                return avro_by_file(text)
            return protobuf_by_file(text, options.message, path.parent)
        except InputError as error:
            raise InputError(error.condition, f"schema file '{options.schema_file}': {error.message}") from None
    if options.registry is None:
        return None
    registry = _registry(options.registry)
    return avro_by_registry(registry) if options.format == "avro" else protobuf_by_registry(registry)


def check_schema(options: ReadKafka) -> None:
    """Raise :class:`InputError` for a schema that cannot be read, or a registry that does not answer."""
    value_reader(options)
    if options.registry is not None:
        _registry(options.registry).check()


@lru_cache(maxsize=8)
def _registry(url: str) -> SchemaRegistry:
    """What this process knows of a registry: a worker keeps it from one micro-batch to the next."""
    return SchemaRegistry(url)
