"""Avro and Protobuf values, encoded here by hand as their specifications say, by file and by a registry."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headgate.errors import InputError
from headgate.tasks.kafka.read import ReadKafka
from headgate.tasks.kafka.schemas import check_schema, value_reader
from headgate.tasks.kafka.values import Decoded, decoder
from headgate.tasks.row_errors import SourceAwayError
from tests.schema_registry import registry


def varint(number: int) -> bytes:
    made = b""
    while number > 0x7F:
        made, number = made + bytes([number & 0x7F | 0x80]), number >> 7
    return made + bytes([number])


def zigzag(number: int) -> bytes:
    return varint(number * 2 if number >= 0 else -number * 2 - 1)


def framed(number: int, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + value


AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "city",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "Name", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
AVRO_COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("amount", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("absent", pa.float64()),
    ]
)
MOMENT = datetime(2026, 11, 1, 12, 0, 0, 250_000, UTC)


def avro_text(text: str) -> bytes:
    return zigzag(len(text.encode())) + text.encode()


def avro_order(number: int, name: str | None, cents: int, tags: list[str]) -> bytes:
    amount = cents.to_bytes(4, "big", signed=True)
    named = zigzag(0) if name is None else zigzag(1) + avro_text(name)
    listed = (zigzag(len(tags)) + b"".join(map(avro_text, tags)) if tags else b"") + b"\0"
    micros = int(MOMENT.timestamp() * 1e6)
    return zigzag(number) + named + zigzag(len(amount)) + amount + zigzag(micros) + listed


def decoded(schema: pa.Schema, values: Sequence[bytes | None], **options: Any) -> Decoded:
    columns = "id bigint"  # what is read follows from the schema that is asked for
    read = value_reader(ReadKafka(servers="a:1", topics=("t",), columns=columns, **options))
    return decoder(options["format"], schema, read)(values)


def avro_file(folder: Path) -> str:
    (folder / "order.avsc").write_text(json.dumps(AVRO))
    return str(folder / "order.avsc")


NAMES = st.none() | st.text(st.characters(codec="utf-8"), max_size=9)


@given(st.integers(-(2**63), 2**63 - 1), NAMES, st.integers(-(10**8), 10**8), st.lists(st.text(max_size=3), max_size=3))
def test_avro_by_file(
    tmp_path_factory: pytest.TempPathFactory, number: int, name: str | None, cents: int, tags: list[str]
) -> None:
    path = avro_file(tmp_path_factory.mktemp("avro"))
    values = [avro_order(number, name, cents, tags), None]
    rows = decoded(AVRO_COLUMNS, values, format="avro", schema_file=path).rows.to_pylist()
    assert rows[0] == {
        "id": number,
        "name": name,
        "amount": Decimal(cents) / 100,
        "at": MOMENT,
        "tags": tags,
        "absent": None,
    }
    assert set(rows[1].values()) == {None}


def test_avro_values_that_are_none_are_broken_records(tmp_path: Path) -> None:
    good = avro_order(1, "a", 100, [])
    values = [good, good[:4], good + b"more", b"", good]
    made = decoded(AVRO_COLUMNS, values, format="avro", schema_file=avro_file(tmp_path))
    assert [row["id"] for row in made.rows.to_pylist()] == [1, 1]
    assert [place for place, _ in made.broken] == [1, 2, 3]
    assert "4 bytes are left behind the value: another schema wrote it" in made.broken[1][1]
    small = pa.schema([("name", pa.int32())])
    assert decoded(small, [good], format="avro", schema_file=avro_file(tmp_path)).broken == (
        (0, "name: invalid literal for int() with base 10: 'a'"),
    )


def test_avro_by_a_registry_with_schemas_that_change_and_refer(tmp_path: Path) -> None:
    place = {"type": "record", "name": "city.Place", "fields": [{"name": "zone", "type": "string"}]}
    second = {**AVRO, "fields": [AVRO["fields"][0], {"name": "place", "type": "city.Place"}]}
    columns = pa.schema([("id", pa.int64()), ("place", pa.struct([("zone", pa.string())]))])
    with registry() as server:
        server.add(7, "AVRO", json.dumps(AVRO))
        server.add(300, "AVRO", json.dumps(second), city="place")
        server.add_subject("place", "AVRO", json.dumps(place))
        server.add(8, "PROTOBUF", 'syntax = "proto3";')
        values = [
            framed(7, avro_order(1, None, 0, [])),
            framed(300, zigzag(2) + avro_text("north")),
            framed(9, b""),
            framed(8, b""),
            b"{}",
            framed(300, zigzag(3) + avro_text("south")),
        ]
        made = decoded(columns, values, format="avro", registry=server.url)
        decoded(columns, values, format="avro", registry=server.url)
        assert server.asked.count("/schemas/ids/300") == 1
        assert server.asked.count("/schemas/ids/9") == 1, "what is unknown is not asked for with every record"
    assert made.rows.to_pylist() == [
        {"id": 1, "place": None},
        {"id": 2, "place": {"zone": "north"}},
        {"id": 3, "place": {"zone": "south"}},
    ]
    reasons = dict(made.broken)
    assert "the schema registry has no schema 9" in reasons[2]
    assert "schema 8 is Protobuf, not Avro" in reasons[3]
    assert "does not begin with the number of a schema" in reasons[4]


def test_a_registry_that_is_away_is_no_fault_of_the_records() -> None:
    columns = pa.schema([("id", pa.int64())])
    with registry() as server:
        server.add(7, "AVRO", json.dumps(AVRO))
        server.fails = True
        with pytest.raises(SourceAwayError, match="answers 503"):
            decoded(columns, [framed(7, b"")], format="avro", registry=server.url)
        server.fails = False
        values: list[bytes | None] = [framed(7, avro_order(5, None, 0, []))]
        assert decoded(columns, values, format="avro", registry=server.url).rows.to_pylist() == [{"id": 5}]
    options = ReadKafka(servers="a", topics=("t",), columns="a int", format="avro", registry="http://127.0.0.1:1")
    with pytest.raises(InputError, match=r"schema registry at http://127\.0\.0\.1:1 does not answer"):
        check_schema(options)


PROTO = """
syntax = "proto3";
package city;
import "google/protobuf/timestamp.proto";
import "place.proto";
enum Kind { SMALL = 0; LARGE = 1; }
message Order {
  int64 id = 1;
  optional string name = 2;
  Kind kind = 3;
  google.protobuf.Timestamp at = 4;
  repeated double parts = 5;
  map<string, int32> counts = 6;
  Place place = 7;
  message Item { string code = 1; }
  bool paid = 8;
}
message Other { string x = 1; message Deep { sint32 n = 1; } }
"""
PLACE = 'syntax = "proto3"; package city; message Place { string zone = 1; }'
PROTO_COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("kind", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("parts", pa.list_(pa.float64())),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("place", pa.struct([("zone", pa.string())])),
        ("paid", pa.bool_()),
    ]
)


def tagged(number: int, value: int | bytes) -> bytes:
    """A field: a varint, or what has a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    return varint(number << 3 | 2) + varint(len(value)) + value


def proto_order(number: int) -> bytes:
    at = tagged(1, int(MOMENT.timestamp())) + tagged(2, MOMENT.microsecond * 1000)
    entry = tagged(1, b"a") + tagged(2, 3)
    parts = struct.pack("<dd", 0.5, -1.0)
    fields = [tagged(1, number), tagged(2, b"n"), tagged(3, 1), tagged(4, at), tagged(5, parts), tagged(6, entry)]
    return b"".join([*fields, tagged(7, tagged(1, b"north"))])


ORDER = {
    "id": -7,
    "name": "n",
    "kind": "LARGE",
    "at": MOMENT,
    "parts": [0.5, -1.0],
    "counts": [("a", 3)],
    "place": {"zone": "north"},
    "paid": False,
}


def proto_file(folder: Path) -> str:
    (folder / "order.proto").write_text(PROTO)
    (folder / "place.proto").write_text(PLACE)
    return str(folder / "order.proto")


def test_protobuf_by_file(tmp_path: Path) -> None:
    path = proto_file(tmp_path)
    values = [proto_order(-7), b"", None, b"\xff", proto_order(8)[:-2]]
    made = decoded(PROTO_COLUMNS, values, format="protobuf", schema_file=path)
    rows = made.rows.to_pylist()
    assert rows[0] == ORDER
    unset: dict[str, Any] = {
        "id": 0,
        "name": None,
        "kind": "SMALL",
        "at": None,
        "parts": [],
        "counts": [],
        "place": None,
        "paid": False,
    }
    assert rows[1] == unset
    assert set(rows[2].values()) == {None}
    assert [place for place, _ in made.broken] == [3, 4]
    other = pa.schema([("x", pa.string())])
    for name in ("Other", "city.Other"):
        made = decoded(other, [tagged(1, b"yes")], format="protobuf", schema_file=path, message=name)
        assert made.rows.to_pylist() == [{"x": "yes"}]


def test_protobuf_by_a_registry(tmp_path: Path) -> None:
    with registry() as server:
        server.add(1, "PROTOBUF", PROTO, **{"place.proto": "place"})
        server.add_subject("place", "PROTOBUF", PLACE)
        values = [framed(1, b"\0" + proto_order(-7)), framed(1, zigzag(1) + zigzag(0) + proto_order(-7))]
        made = decoded(
            PROTO_COLUMNS, [*values, framed(1, zigzag(1) + zigzag(9))], format="protobuf", registry=server.url
        )
        assert made.rows.to_pylist() == [ORDER, ORDER]
        assert "its schema has no message [9]" in made.broken[0][1]
        deep = framed(1, zigzag(2) + zigzag(1) + zigzag(0) + varint(1 << 3) + zigzag(-4))
        number = pa.schema([("n", pa.int32())])
        assert decoded(number, [deep], format="protobuf", registry=server.url).rows.to_pylist() == [{"n": -4}]


def test_what_cannot_work_is_refused_in_a_sentence(tmp_path: Path) -> None:
    def options(**more: Any) -> ReadKafka:
        return ReadKafka(servers="a", topics=("t",), columns="id bigint", **more)

    faults: list[tuple[dict[str, Any], str]] = [
        ({"format": "avro"}, "format avro needs either schema_file or registry"),
        ({"format": "avro", "schema_file": "a", "registry": "http://a"}, "needs either schema_file or registry"),
        ({"format": "json", "registry": "http://a"}, "format json has no schema"),
        ({"format": "avro", "schema_file": "a", "message": "m"}, "message names a message"),
    ]
    for more, sentence in faults:
        with pytest.raises(ValidationError, match=sentence):
            options(**more)
    (tmp_path / "bad").write_text("nothing")
    (tmp_path / "empty.proto").write_text('syntax = "proto3";')
    cases: list[tuple[dict[str, Any], str]] = [
        ({"format": "avro", "schema_file": str(tmp_path / "none")}, "cannot be read .*; correct the path"),
        ({"format": "avro", "schema_file": str(tmp_path / "bad")}, "not an Avro schema"),
        ({"format": "protobuf", "schema_file": str(tmp_path / "bad")}, "not a .proto file"),
        ({"format": "protobuf", "schema_file": str(tmp_path / "empty.proto")}, "has no message"),
        (
            {"format": "protobuf", "schema_file": proto_file(tmp_path), "message": "Nobody"},
            "has no message 'Nobody'; it has Order, Other",
        ),
    ]
    for more, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            check_schema(options(**more))
