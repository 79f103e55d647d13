"""Spark's column types, read without Spark. What is expected here is what Spark 4.3's DataType.fromDDL answers."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import BadValue
from headgate.model.sql_type import columns_of_type, quoted, sql_type

CANONICAL = {
    "boolean": "boolean",
    "byte": "tinyint",
    "Tinyint": "tinyint",
    "short": "smallint",
    "integer": "int",
    "LONG": "bigint",
    "real": "float",
    "double": "double",
    "date": "date",
    "time": "time(6)",
    "time(3)": "time(3)",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "timestamp without time zone": "timestamp_ntz",
    "string collate unicode_ci": "string collate UNICODE_CI",
    "binary": "binary",
    "void": "void",
    "variant": "variant",
    "decimal": "decimal(10,0)",
    "dec": "decimal(10,0)",
    "numeric(3)": "decimal(3,0)",
    "decimal ( 38 , 38 )": "decimal(38,38)",
    "character(3)": "char(3)",
    "varchar(0)": "varchar(0)",
    "interval": "interval",
    "interval month": "interval month",
    "interval year to month": "interval year to month",
    "interval day to hour": "interval day to hour",
    "array < int >": "array<int>",
    "map<string, array<int>>": "map<string,array<int>>",
    "struct<>": "struct<>",
    "struct < A : int >": "struct<A:int>",
    "struct<a int not null comment 'why', `b c`: date>": "struct<a:int,`b c`:date>",
    "geometry(4326)": "geometry(4326)",
    "array<array<array<int>>>": "array<array<array<int>>>",
    "int -- why\n": "int",
    "int /* why */": "int",
}

NO_TYPES = [
    *("", " ", "text", "uint", "null", "object", "timestamp(3)", "timestamp with time zone", "string(3)"),
    *("decimal(39,0)", "decimal(2,3)", "decimal(5,-2)", "decimal(1e1,0)", "char", "varchar", "char(99999999999)"),
    *(
        "interval second to day",
        "interval month to month",
        "array<int>[]",
        "map<int>",
        "array",
        "struct",
        "struct<a b>",
    ),
    *(
        "struct<a:int,>",
        "struct<1:int>",
        "double precision",
        "int unsigned",
        "int,",
        "int;",
        "'int'",
        "int(3)",
        "geometry",
    ),
    *("array<int", "struct<a:int", "decimal(", "decimal(3", "`int`", "<", ">", "array<>", "int int", "int /* open"),
]


@pytest.mark.parametrize("text", CANONICAL)
def test_types_in_sparks_own_spelling(text: str) -> None:
    assert sql_type(text) == CANONICAL[text]
    assert sql_type(sql_type(text)) == sql_type(text)


@pytest.mark.parametrize("text", NO_TYPES)
def test_what_spark_does_not_take_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        sql_type(text)


COLUMNS = {
    "a int, b string": [("a", "int"), ("b", "string")],
    "a: int,b:string": [("a", "int"), ("b", "string")],
    "timestamp timestamp, date date": [("timestamp", "timestamp"), ("date", "date")],
    "text string, topic string": [("text", "string"), ("topic", "string")],
    "int int": [("int", "int")],
    "interval string": [("interval", "string")],
    "`my col` int": [("my col", "int")],
    "`a``b` int": [("a`b", "int")],
    "1a int, 0x int, _ int": [("1a", "int"), ("0x", "int"), ("_", "int")],
    "a\tint,\n b\nstring": [("a", "int"), ("b", "string")],
    "select int, end int": [("select", "int"), ("end", "int")],
    "a decimal(10, 2), b map<string, int>": [("a", "decimal(10,2)"), ("b", "map<string,int>")],
    "a int comment 'x, y', b int": [("a", "int"), ("b", "int")],
    "a interval day to second, b int": [("a", "interval day to second"), ("b", "int")],
    "`ü` string": [("ü", "string")],
}
NO_COLUMNS = [
    "",
    "a",
    "a int,",
    ",",
    "a int b int",
    "a-b int",
    "a.b int",
    "é int",
    "a$b int",
    "'a' int",
    "1 int",
    "1e3 int",
]
NO_COLUMNS += [
    "1.5 int",
    "a`b int",
    "`` int",
    "`a\x01` int",
    "a int default 3",
    "a, b int",
    "a int, , b int",
    "a int; b int",
]


@pytest.mark.parametrize("text", COLUMNS)
def test_columns_as_in_create_table(text: str) -> None:
    assert list(columns_of_type(text)) == COLUMNS[text]


@pytest.mark.parametrize("text", NO_COLUMNS)
def test_what_is_no_list_of_columns_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        columns_of_type(text)


def test_a_slip_is_told_with_the_nearest_type() -> None:
    with pytest.raises(BadValue, match="unknown column type 'timestmp'") as message:
        columns_of_type("a int, b array<timestmp>")
    assert message.value.nearest == "timestamp"


def test_depth_and_length_are_bounded() -> None:
    assert sql_type("array<" * 50 + "int" + ">" * 50)
    with pytest.raises(BadValue, match="deeper than 50 levels"):
        sql_type("array<" * 51 + "int" + ">" * 51)
    with pytest.raises(BadValue, match="deeper than 50 levels"):
        sql_type("struct<a:" * 10_000)
    with pytest.raises(BadValue, match="more than 100,000 characters"):
        columns_of_type("a int, " * 20_000)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1))
def test_any_name_can_be_quoted(name: str) -> None:
    assert columns_of_type(f"{quoted(name)} int") == ((name, "int"),)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for reads in (sql_type, columns_of_type):
        with contextlib.suppress(BadValue):
            reads(text)
