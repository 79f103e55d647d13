"""The built-in task types: examples, descriptions, and the columns each of them makes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.documents import parse
from headgate.errors import InvalidDataflow
from headgate.model.schema import Schema
from headgate.model.task_type import Inputs, Role, TaskType
from headgate.tasks import BUILT_IN
from headgate.tasks.functions import is_import_path
from headgate.tasks.reference import options_of, to_markdown
from headgate.tasks.registry import Registry, default_registry
from headgate_riotbench import TYPES as RIOTBENCH

KINDS = (*BUILT_IN, *RIOTBENCH)
BY_NAME = {kind.name: kind for kind in KINDS}
ROWS = "id string, t timestamp, v double, text string, xs array<double>"


def _sources(kind: TaskType) -> list[dict[str, Any]]:
    count = kind.ports.inputs[0].streams_min if kind.ports.inputs else 0
    return [{"id": f"source{n}", "type": "opaque", "ports": {"outputs": ["out"]}} for n in range(count)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_example_of_every_type_is_valid(kind: TaskType) -> None:
    sources = _sources(kind)
    task = {"id": "example", "type": kind.name, "config": dict(kind.config.example)}
    if sources:
        task["inputs"] = [source["id"] for source in sources]
    document = {"tasks": [*sources, task]}
    assert parse(json.dumps(document), "json").dataflow.tasks[-1].type == kind.name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_option_is_described(kind: TaskType) -> None:
    assert kind.summary.endswith(".")
    for option in options_of(kind):
        assert option.description.endswith(".")
        assert option.type
        assert option.name in to_markdown(kind)
        assert not (option.required and option.default is not None)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_role_and_ports_agree(kind: TaskType) -> None:
    assert (kind.role is Role.SOURCE) == (not kind.ports.inputs)
    assert (kind.role is Role.SINK) == (bool(kind.ports.inputs) and not kind.ports.outputs)
    assert kind.package == ("headgate" if kind in BUILT_IN else "headgate-riotbench")


def _made(name: str, config: dict[str, Any], *entering: str | None) -> str | None:
    """The columns that a task makes of those that enter it, one text for each side."""
    schemas = [None if text is None else Schema.parse(text) for text in entering]
    inputs = Inputs({"in": schemas})
    outputs = BY_NAME[name].config.model_validate(config).outputs(inputs)
    assert inputs.unknown == []
    made = outputs.get("out")
    return None if made is None else str(made)


SCHEMAS: list[tuple[str, dict[str, Any], str | None]] = [
    ("filter", {"where": "v > 1"}, ROWS),
    ("range_filter", {"ranges": {"V": [0, 1]}}, ROWS),
    ("select", {"columns": ["v", "ID"]}, "v double, ID string"),
    ("drop", {"columns": ["T", "xs"]}, "id string, v double, text string"),
    (
        "derive",
        {"columns": {"v": "v + 1", "w": "v"}},
        "id string, t timestamp, v ?, text string, xs array<double>, w ?",
    ),
    ("rename", {"columns": {"V": "w"}}, "id string, t timestamp, w double, text string, xs array<double>"),
    ("cast", {"columns": {"v": "Long"}}, "id string, t timestamp, v bigint, text string, xs array<double>"),
    ("explode", {"column": "xs", "into": "x"}, "id string, t timestamp, v double, text string, x ?"),
    ("explode", {"column": "xs"}, "id string, t timestamp, v double, text string, xs ?"),
    ("tokenise", {"column": "text"}, f"{ROWS}, word string"),
    ("sample", {"share": 0.5}, ROWS),
    ("union", {}, ROWS),
    ("parse_json", {"column": "text", "columns": "a int"}, "a int"),
    (
        "parse_json",
        {"column": "text", "columns": "v int, a int", "keep": True},
        ROWS.replace("v double", "v int") + ", a int",
    ),
    ("parse_csv", {"column": "text", "columns": "a int"}, "a int"),
    ("range_filter", {"ranges": {"V": [0, 1]}, "outside": "null"}, ROWS),
    (
        "unpivot",
        {"columns": ["v"], "field": "name", "value": "value"},
        "id string, t timestamp, text string, xs array<double>, name string, value double",
    ),
    ("parse_senml", {"column": "text", "columns": "a int"}, "time timestamp, a int"),
    (
        "parse_senml",
        {"column": "text", "columns": "v bigint", "time": None, "keep": True},
        "id string, t timestamp, v bigint, xs array<double>",
    ),
    ("parse_xml", {"column": "text", "columns": "a int"}, "a int"),
    ("to_senml", {"values": {"v": "m"}, "texts": {"id": "string"}, "time": "t"}, "value string"),
    ("to_senml", {"values": {"v": "m"}, "keep": True, "into": "text"}, ROWS),
    ("bloom_filter", {"column": "id", "ids": "p"}, ROWS),
    (
        "annotate",
        {"key": "id", "path": "p", "columns": "k string, text int, b string"},
        f"{ROWS}, b string".replace("text string", "text int"),
    ),
    (
        "join_table",
        {"on": ["ID"], "path": "p", "columns": "id string, v bigint, w bigint"},
        f"{ROWS}, right_v bigint, w bigint",
    ),
    (
        "query_table",
        {"url": "u", "query": "select 1", "columns": "a int", "keep": ["t"]},
        "t timestamp, a int",
    ),
    ("predict_linear", {"model": "p"}, f"{ROWS}, predicted double"),
    ("classify_tree", {"model": "p"}, f"{ROWS}, class string"),
    ("error_estimate", {"observed": "v", "predicted": "v", "mean": "v"}, f"{ROWS}, error double"),
    (
        "upload",
        {"folder": "f", "name": "id", "content": "text"},
        "id string, t timestamp, v double, xs array<double>, path string",
    ),
    ("download", {"folder": "f", "name": "id"}, f"{ROWS}, content binary"),
    ("zip", {"name": "id", "content": "text"}, "name string, entries int, archive binary"),
    ("plot", {"lines": ["xs"], "title": "id"}, f"{ROWS}, chart binary"),
    ("block_average", {"key": ["id"], "column": "v"}, f"{ROWS}, average double"),
    ("interpolate", {"key": ["id"], "columns": ["v"]}, ROWS),
    (
        "join_fields",
        {"key": ["id"], "field": "text", "value": "v", "columns": "a double"},
        "id string, t timestamp, xs array<double>, a double",
    ),
    (
        "accumulate",
        {"key": ["id"], "columns": ["t", "v"]},
        ROWS.replace("t timestamp", "t array<double>").replace("v double", "v array<double>"),
    ),
    ("distinct", {"key": ["id"], "column": "text"}, f"{ROWS}, distinct double"),
    ("distinct_sketch", {"key": ["id"], "column": "text"}, f"{ROWS}, distinct double"),
    ("second_moment", {"key": ["id"], "column": "text"}, f"{ROWS}, moment double"),
    ("sliding_regression", {"key": ["id"], "column": "v"}, f"{ROWS}, predictions array<double>"),
    ("top_k", {"key": ["id"], "column": "v"}, f"{ROWS}, rank bigint"),
    ("train_linear", {"key": ["id"], "features": ["v"], "target": "v"}, f"{ROWS}, model string"),
    ("train_tree", {"key": ["id"], "features": ["v"], "label": "text"}, f"{ROWS}, model string"),
    ("count", {"key": ["id"]}, f"{ROWS}, count bigint"),
    ("moving_average", {"key": ["id"], "column": "v"}, f"{ROWS}, average double"),
    ("difference", {"key": ["id"], "column": "v", "into": "v"}, ROWS),
    ("kalman", {"key": ["id"], "column": "v"}, f"{ROWS}, smoothed double"),
    ("dedup", {"key": ["id"]}, ROWS),
    (
        "window",
        {"time": "t", "size": "1min", "key": ["ID"], "columns": {"n": "count(*)"}},
        "window_start timestamp, window_end timestamp, ID string, n ?",
    ),
    ("python", {"function": "a.b"}, ROWS),
    ("python", {"function": "a.b", "columns": "a long"}, "a bigint"),
    ("sql", {"query": "select 1"}, None),
    ("sql", {"query": "select 1", "columns": "a int"}, "a int"),
    ("opaque", {}, None),
    *(
        (name, dict(BY_NAME[name].config.example), None)
        for name in BY_NAME
        if name.startswith("write_") and name not in ("write_kafka", "write_mqtt", "write_delta")
    ),
    ("write_mqtt", {"topic": "t", "column": "id"}, None),
    ("write_kafka", {"servers": "a", "topic": "b", "key": "id"}, None),
    ("write_delta", {"path": "a", "key": ["id"]}, None),
]


@pytest.mark.parametrize(("name", "config", "made"), SCHEMAS, ids=lambda value: value if isinstance(value, str) else "")
def test_the_columns_that_a_task_makes(name: str, config: dict[str, Any], made: str | None) -> None:
    assert _made(name, config, ROWS) == made


@pytest.mark.parametrize(("name", "config", "made"), SCHEMAS, ids=lambda value: value if isinstance(value, str) else "")
def test_nothing_is_made_up_where_the_input_is_not_known(name: str, config: dict[str, Any], made: str | None) -> None:
    unknown = _made(name, config, None)
    assert unknown is None or {c.name for c in Schema.parse(unknown.replace(" ?", " void")).columns} <= {
        column.name for column in Schema.parse((made or "a int").replace(" ?", " void")).columns
    }


def test_the_columns_of_a_join() -> None:
    config = {"on": ["id"], "time": ["t", "t"], "within": "1s"}
    assert _made("join", config, "id string, t timestamp, a int", "ID string, t timestamp, b int") == (
        "id string, t timestamp, a int, right_t timestamp, b int"
    )
    assert _made("join", config, "id string, t timestamp", None) is None


@pytest.mark.parametrize(
    ("name", "config", "made"),
    [
        ("read_files", {"path": "p", "columns": "a long"}, "a bigint"),
        ("read_files", {"path": "p", "format": "text"}, "value string"),
        ("replay", {"path": "p", "columns": "a int, t timestamp", "time_column": "T"}, "a int, t timestamp"),
        ("rate", {}, "timestamp timestamp, value bigint"),
        ("read_socket", {"port": 1}, "value string"),
        ("read_table", {"url": "sqlite://", "table": "t", "by": "A", "columns": "a long"}, "a bigint"),
        ("read_delta", {"path": "p", "columns": "a long"}, "a bigint"),
        ("read_iceberg", {"catalog": "sqlite://", "table": "n.t", "columns": "a long"}, "a bigint"),
        ("generate", {}, "id bigint, value string"),
        ("read_mqtt", {"topics": ["a"]}, "topic string, value string"),
        (
            "read_kafka",
            {"servers": "a", "topics": ["b"]},
            "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp",
        ),
    ],
)
def test_the_columns_that_sources_bring(name: str, config: dict[str, Any], made: str) -> None:
    assert _made(name, config) == made


READS: list[tuple[str, dict[str, Any], set[tuple[str, str]]]] = [
    ("filter", {"where": "a > b"}, {("where", "a"), ("where", "b")}),
    ("range_filter", {"ranges": {"a": [0, 1]}}, {("ranges", "a")}),
    ("select", {"columns": ["a", "v"]}, {("columns", "a")}),
    ("drop", {"columns": ["a"]}, {("columns", "a")}),
    ("derive", {"columns": {"x": "a + v"}}, {("columns", "a")}),
    ("rename", {"columns": {"a": "b"}}, {("columns", "a")}),
    ("cast", {"columns": {"a": "int"}}, {("columns", "a")}),
    ("explode", {"column": "a"}, {("column", "a")}),
    ("tokenise", {"column": "a"}, {("column", "a")}),
    ("parse_json", {"column": "a", "columns": "x int"}, {("column", "a")}),
    ("parse_csv", {"column": "a", "columns": "x int"}, {("column", "a")}),
    ("count", {"key": ["a"]}, {("key", "a")}),
    ("moving_average", {"key": ["a"], "column": "b"}, {("key", "a"), ("column", "b")}),
    ("difference", {"key": ["a"], "column": "b"}, {("key", "a"), ("column", "b")}),
    ("kalman", {"key": ["a"], "column": "b"}, {("key", "a"), ("column", "b")}),
    ("dedup", {"key": ["a"]}, {("key", "a")}),
    (
        "window",
        {"time": "a", "size": "1s", "key": ["b"], "columns": {"n": "sum(c)"}},
        {("time", "a"), ("key", "b"), ("columns", "c")},
    ),
    ("write_kafka", {"servers": "s", "topic": "t", "key": "a"}, {("key", "a")}),
    ("write_kafka", {"servers": "s", "topic": "t", "headers": ["a"], "value": "b"}, {("headers", "a"), ("value", "b")}),
    ("write_table", {"url": "sqlite://", "table": "t", "key": ["a"], "delete": "b"}, {("key", "a"), ("delete", "b")}),
    (
        "write_iceberg",
        {"catalog": "sqlite://", "table": "n.t", "key": ["a"], "delete": "b"},
        {("key", "a"), ("delete", "b")},
    ),
    ("write_delta", {"path": "p", "key": ["a"], "partition_by": ["b"]}, {("key", "a"), ("partition_by", "b")}),
    ("unpivot", {"columns": ["a", "v"]}, {("columns", "a")}),
    ("parse_senml", {"column": "a", "columns": "x int"}, {("column", "a")}),
    ("parse_xml", {"column": "a", "columns": "x int"}, {("column", "a")}),
    ("to_senml", {"time": "a", "texts": {"b": "m"}, "values": {"v": "m"}}, {("time", "a"), ("texts", "b")}),
    ("bloom_filter", {"column": "a", "ids": "p", "nulls": ["b"]}, {("column", "a"), ("nulls", "b")}),
    ("annotate", {"key": "a", "path": "p", "columns": "k string, x string"}, {("key", "a")}),
    ("join_table", {"on": ["a"], "path": "p", "columns": "a string"}, {("on", "a")}),
    ("query_table", {"url": "u", "query": "select 1", "columns": "x int", "keep": ["a"]}, {("keep", "a")}),
    ("error_estimate", {"observed": "a", "predicted": "v", "mean": "b"}, {("observed", "a"), ("mean", "b")}),
    ("upload", {"folder": "f", "name": "a", "content": "b"}, {("name", "a"), ("content", "b")}),
    ("download", {"folder": "f", "name": "a"}, {("name", "a")}),
    ("zip", {"name": "a", "content": "b"}, {("name", "a"), ("content", "b")}),
    ("plot", {"lines": ["a"], "title": "b"}, {("lines", "a"), ("title", "b")}),
    ("interpolate", {"key": ["a"], "columns": ["b"]}, {("key", "a"), ("columns", "b")}),
    (
        "join_fields",
        {"key": ["v"], "field": "a", "value": "b", "columns": "x bigint"},
        {("field", "a"), ("value", "b")},
    ),
    ("train_tree", {"key": ["v"], "features": ["a"], "label": "b"}, {("features", "a"), ("label", "b")}),
    *(
        (name, {"key": ["a"], "column": "b"}, {("key", "a"), ("column", "b")})
        for name in ("block_average", "distinct", "distinct_sketch", "second_moment", "sliding_regression", "top_k")
    ),
    ("write_mqtt", {"topic": "t", "column": "a"}, {("column", "a")}),
]


@pytest.mark.parametrize(
    ("name", "config", "missing"), READS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_columns_that_are_not_there_are_noted(name: str, config: dict[str, Any], missing: set[tuple[str, str]]) -> None:
    inputs = Inputs({"in": [Schema.parse("v double, ab string")]})
    BY_NAME[name].config.model_validate(config).outputs(inputs)
    assert {(unknown.option, unknown.column) for unknown in inputs.unknown} == missing
    assert {unknown.nearest for unknown in inputs.unknown if unknown.column in ("a", "b")} <= {"ab"}


def test_both_sides_of_a_join_are_looked_at() -> None:
    config = {"on": ["k"], "time": ["t", "u"], "within": "1s"}
    inputs = Inputs({"in": [Schema.parse("k int, u int"), Schema.parse("t int")]})
    BY_NAME["join"].config.model_validate(config).outputs(inputs)
    assert [(unknown.option, unknown.column) for unknown in inputs.unknown] == [
        ("time", "t"),
        ("on", "k"),
        ("time", "u"),
    ]


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("read_files", {"path": "p"}, "format json needs columns"),
    ("read_files", {"path": "p", "format": "text", "columns": "a int"}, "leave columns out"),
    ("read_files", {"path": "p", "columns": "a int", "header": True}, "header is an option of format csv"),
    ("replay", {"path": "p", "columns": "a int", "rate_per_s": 1, "time_column": "a"}, "both set the pace"),
    ("replay", {"path": "p", "columns": "a int", "speed": 2}, "speed needs time_column"),
    ("replay", {"path": "p", "columns": "a int", "time_column": "b"}, "is not among the columns"),
    ("window", {"time": "t", "size": "1s", "columns": {"n": "1"}, "slide": "1s"}, "come together or not at all"),
    ("window", {"time": "t", "size": "1s", "columns": {"n": "1"}, "kind": "sliding"}, "come together or not at all"),
    ("window", {"time": "t", "size": "1s", "columns": {"n": "1"}, "key": ["T"]}, "cannot be a key as well; add it as"),
    ("window", {"time": "t", "size": "1 week", "columns": {"n": "1"}}, "is not a span of time"),
    ("python", {"function": "f"}, "is not an import path"),
    ("write_call", {"function": "a..b"}, "is not an import path"),
    ("sql", {"query": "drop table x"}, "not a SQL query"),
    ("sample", {"share": 2}, "config.share is 2"),
    ("cast", {"columns": {"a": "nmuber"}}, "unknown column type 'nmuber'"),
    ("read_socket", {"port": 70_000}, "config.port is 70000"),
    ("parse_senml", {"columns": "a int", "required": ["b"]}, "required names 'b', which is not among the columns"),
    ("parse_senml", {"columns": "a int", "latest": "soon"}, "is not a date"),
    ("parse_xml", {"columns": "a int", "paths": {"b": "c"}}, "paths names 'b', which is not among the columns"),
    ("to_senml", {}, "neither texts nor values"),
    ("annotate", {"key": "a", "path": "p", "columns": "a string"}, "name the attributes too"),
    ("join_table", {"on": ["a"], "path": "p", "columns": "b int"}, "on names 'a', which is not among the columns"),
    ("join_fields", {"key": ["a"], "columns": "x array<int>"}, "a field is double, string, bigint or boolean"),
    ("train_tree", {"key": ["k"], "features": ["a"], "label": "a"}, "the tree would look it up"),
    ("plot", {"lines": [f"l{n}" for n in range(21)]}, "21 lines in one chart"),
    ("query_table", {"url": "u", "query": "drop table x", "columns": "a int"}, "not a SQL query"),
]


@pytest.mark.parametrize(("name", "config", "says"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_options_that_do_not_go_together(name: str, config: dict[str, Any], says: str) -> None:
    sources = _sources(BY_NAME[name])
    task = {"id": "a", "type": name, "config": config, "inputs": [source["id"] for source in sources]}
    with pytest.raises(InvalidDataflow, match=says) as message:
        parse(json.dumps({"tasks": [*sources, task]}), "json")
    (fault,) = message.value.faults
    assert (fault.condition, fault.task) == ("BAD_VALUE", "a")


def test_names_are_registered_once() -> None:
    with pytest.raises(ValueError, match="'filter' is registered twice"):
        Registry([BY_NAME["filter"], BY_NAME["filter"]])
    registry = default_registry()
    assert set(BY_NAME) <= set(registry)
    assert registry.nearest("Filtr") == "filter"
    assert len(registry) == len(list(registry))


@pytest.mark.parametrize("text", ["a.b", "a.b.c", "a:b", "a.b:c", "_a._b1"])
def test_import_paths(text: str) -> None:
    assert is_import_path(text)


@pytest.mark.parametrize("text", ["", "a", "a.", ".a", "a..b", "1a.b", "a b.c", "a.b\n", "a." * 300 + "b"])
def test_what_is_no_import_path(text: str) -> None:
    assert not is_import_path(text)
