"""The columns of a stream."""

from __future__ import annotations

import pytest

from headgate.errors import BadValue
from headgate.model.schema import Column, Schema

TEXTS = ["id string, v double", "value string", "`the city` string, `a``b` int, s struct<X:int,`y z`:array<date>>"]


@pytest.mark.parametrize("text", [*TEXTS, "string", "interval day", "array<int>"])
def test_a_schema_is_equal_to_one_read_from_its_text(text: str) -> None:
    schema = Schema.parse(text)
    assert Schema.parse(str(schema)) == schema
    assert hash(Schema.parse(str(schema))) == hash(schema)


def test_a_single_type_means_one_column_called_value() -> None:
    assert Schema.parse("string") == Schema((Column("value", "string"),))
    assert Schema.parse("struct<a:int>") == Schema((Column("value", "struct<a:int>"),))


@pytest.mark.parametrize(
    "text", ["timestamp timestamp, v double", "date date", "text string, topic string", "uuid string"]
)
def test_columns_may_be_called_like_types(text: str) -> None:
    assert str(Schema.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "says", "near"),
    [
        ("strng", "unknown column type 'strng'", "string"),
        ("id strng", "unknown column type 'strng'", "string"),
        ("id", "unknown column type 'id'", None),
        ("id, v double", "column 'id' has no type", None),
        ("v double, id", "column 'id' has no type", None),
        ("", "an empty list of columns", None),
        ("id string, ID int", "column 'ID' is there twice", None),
        ("struct<a:foo>", "unknown column type 'foo'", None),
    ],
)
def test_slips_are_told(text: str, says: str, near: str | None) -> None:
    with pytest.raises(BadValue, match=says) as message:
        Schema.parse(text)
    if near:
        assert message.value.nearest == near


def test_columns_are_found_in_whatever_case() -> None:
    schema = Schema.parse("Id string, v double")
    assert schema.find("iD") == Column("Id", "string")
    assert schema.find("w") is None
    assert schema.names == ("Id", "v")


def test_a_column_is_replaced_where_it_stands_or_added_at_the_end() -> None:
    schema = Schema.parse("a int, b int")
    assert str(schema.with_column(Column("A", "string"))) == "A string, b int"
    assert str(schema.with_column(Column("c"))) == "a int, b int, c ?"
