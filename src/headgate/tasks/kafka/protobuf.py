"""Protobuf values: messages of ``.proto`` files, which Google's compiler reads."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headgate.errors import InputError, missing_package
from headgate.tasks.kafka.schema_registry import SchemaRegistry, WrittenSchema, numbered

__all__ = ["protobuf_by_file", "protobuf_by_registry"]

ReadValue = Callable[[bytes], Any]
MAIN = "value.proto"
COMPILE_S = 60


def protobuf_by_file(text: str, message: str | None, folder: Path) -> ReadValue:
    """What reads values of a message, the file's first if none is named; imports are looked up in ``folder``."""
    pool, file = _pool(text, (), str(folder))
    types = pool.FindFileByName(file).message_types_by_name
    if not types:
        raise InputError("SOURCE_UNREADABLE", "the .proto file has no message")
    if message is None:
        return _reader(next(iter(types.values())))
    try:
        return _reader(pool.FindMessageTypeByName(message))
    except KeyError:
        pass
    if message not in types:
        raise InputError("SOURCE_UNREADABLE", f"the .proto file has no message '{message}'; it has {', '.join(types)}")
    return _reader(types[message])


def protobuf_by_registry(registry: SchemaRegistry) -> ReadValue:
    """What reads values that begin with the number of their schema, and with which of its messages they are."""
    _check_compiler()  # what is missing is no fault of a record

    def read(value: bytes) -> Any:
        number, rest = numbered(value)
        written = registry.schema(number)
        if written.kind != "PROTOBUF":
            raise ValueError(f"schema {number} is {written.kind.capitalize()}, not Protobuf")
        places, rest = _places(rest)
        return _by_number(written, places)(rest)

    return read


def _places(value: bytes) -> tuple[tuple[int, ...], bytes]:
    """The way to a message within a schema, as places of messages, and the rest of the value.

    >>> _places(b"\\0rest"), _places(b"\\x04\\x02\\0rest")
    (((0,), b'rest'), ((1, 0), b'rest'))
    """
    count, at = _varint(value, 0)
    places = []
    for _ in range(count):
        place, at = _varint(value, at)
        places.append(place)
    return tuple(places) or (0,), value[at:]


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """A number as Protobuf writes signed ones, and where it ends."""
    number = shift = 0
    while True:
        if at >= len(value) or shift > 63:
            raise ValueError("does not say which message of its schema it is")
        number |= (value[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if value[at - 1] < 0x80:
            return number >> 1 ^ -(number & 1), at


_READERS: dict[tuple[str, tuple[int, ...]], ReadValue] = {}


def _by_number(written: WrittenSchema, places: tuple[int, ...]) -> ReadValue:
    """What reads a message of a schema."""
    known = _READERS.get((written.text, places))
    if known is None:
        try:
            pool, file = _pool(written.text, tuple(_all_references(written).items()), None)
        except InputError as error:
            raise ValueError(error.message) from None
        types = list(pool.FindFileByName(file).message_types_by_name.values())
        try:
            for place in places[:-1]:
                types = list(types[place].nested_types)
            known = _READERS[written.text, places] = _reader(types[places[-1]])
        except IndexError:
            raise ValueError(f"its schema has no message {list(places)}") from None
    return known


def _all_references(written: WrittenSchema) -> dict[str, str]:
    """The files that a schema imports, and those that these do."""
    files: dict[str, str] = {}
    for name, one in written.references.items():
        files |= {name: one.text, **_all_references(one)}
    return files


@lru_cache(maxsize=100)
def _pool(text: str, imported: tuple[tuple[str, str], ...], folder: str | None) -> tuple[Any, str]:
    """The messages of a text and of the files that it imports, and under which name the text is there."""
    _check_compiler()
    from google.protobuf import descriptor_pb2, descriptor_pool

    with tempfile.TemporaryDirectory() as place:
        for name, content in (*imported, (MAIN, text)):
            path = Path(place, name)
            if not path.resolve().is_relative_to(Path(place).resolve()):
                raise InputError("SOURCE_UNREADABLE", f"the schema imports '{name}', which is outside of its folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        out = Path(place, "compiled")
        paths = [f"-I{place}", *([] if folder is None else [f"-I{folder}"])]
        command = [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            *paths,
            "--include_imports",
            f"--descriptor_set_out={out}",
        ]
        ran = subprocess.run([*command, MAIN], capture_output=True, text=True, check=False, timeout=COMPILE_S)
        if ran.returncode:
            raise InputError("SOURCE_UNREADABLE", f"not a .proto file: {' '.join(ran.stderr.split())[:300]}")
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return pool, MAIN


def _check_compiler() -> None:
    """Raise :class:`InputError` where Google's compiler is not installed."""
    if find_spec("grpc_tools") is None:
        error = ModuleNotFoundError("grpc_tools", name="grpcio-tools")
        raise missing_package("MISSING_PACKAGE", "Protobuf values", error, "kafka")


def _reader(kind: Any) -> ReadValue:
    from google.protobuf import message_factory

    made = message_factory.GetMessageClass(kind)
    return lambda value: _plain(made.FromString(value))


WRAPPED = "google.protobuf."
"""The names of messages that stand for one value, such as ``StringValue``."""


def _plain(message: Any) -> Any:
    """A message as a mapping. Fields that are not set are ``None`` where Protobuf knows that."""
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        return message.ToDatetime(UTC)
    if name.startswith(WRAPPED) and name.endswith("Value") and len(message.DESCRIPTOR.fields) == 1:
        return message.value
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            of_value = entry.fields_by_name["value"]
            return {key: _single(one, of_value) for key, one in value.items()}
        return [_single(one, field) for one in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _single(value, field)


def _single(value: Any, field: Any) -> Any:
    if field.message_type is not None:
        return _plain(value)
    if field.enum_type is not None:
        known: Mapping[int, Any] = field.enum_type.values_by_number
        return known[value].name if value in known else str(value)
    return value
