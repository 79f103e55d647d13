"""Strategies for dataflow documents: every built-in task type, alternates, ports, routing, joins, loops, odd texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.tasks.registry import default_registry

ODD_TEXTS = [
    "",
    " ",
    " leading",
    "trailing ",
    "two\nlines",
    "\nfirst line empty",
    "ends with a line break\n",
    "three\n\nlines \n and a space",
    "  indented\n    more",
    "tab\there",
    "return\r\nhere",
    "null",
    "~",
    "true",
    "Yes",
    "on",
    "no",
    "1",
    "1.0",
    "1e3",
    "0x1F",
    "0o17",
    "-.inf",
    ".nan",
    "12:30:45",
    "2020-01-01",
    "=",
    "<<",
    "-",
    "- a",
    "? a",
    ": a",
    "a: b",
    "a #b",
    "#b",
    "&a",
    "*a",
    "!tag",
    "%YAML 1.2",
    "---",
    "...",
    "[a]",
    "{a: b}",
    "'quoted'",
    '"quoted"',
    "'''",
    '"""',
    "\\",
    "\\n",
    "back`tick",
    "<PE id='x'>&amp;</PE>",
    "]]>",
    "<!-- -->",
    "&lt;",
    "%s{0}",
    "$x ${y}",
    "Grüße, 世界, \U0001f30a",
    "e\u0301",
    "\u200f\u202e",
    "\u2028\u2029\x85",
    "\ufeffbom",
    "\ufffd",
    "\x00",
    "\x01\x1b[31m\x7f",
    "nbsp\xa0",
    "x" * 200,
    "word " * 60,
]

ODD_NAMES = [
    *("null", "true", "no", "1", "1.5", "1e3", "0x1", "007", "_", "a.b", "a-b", "a@b", "A", "a"),
    *("flow", "Flow", "alternate", "class", "None", "in", "out", "task", "print", "__name__", "__builtins__"),
    *("flow_2", "a_b", "1a", "x" * 128, "version", "from", "headgate"),
]

PLAIN = st.characters(exclude_categories=["Cs"])
texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(PLAIN, max_size=12))
filled_texts = texts.filter(bool)
numbers = st.one_of(
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, -0.0, 1.0, 1e22, 1e23, 5e-324, 1.7e308, 10**300, 0.1]),
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
positive = st.one_of(st.integers(1, 1000), st.floats(1e-6, 1e6), st.sampled_from([1.0, 1e-300, 1e300]))
money = st.one_of(st.integers(0, 10**8), st.decimals(0, 10**6, places=3).map(float))

COLUMNS = ("id string", "t timestamp", "v double", "text string", "xs array<double>")
BASE = frozenset(column.split()[0] for column in COLUMNS)
COLUMNS_TEXT, PLAIN_TEXT = ", ".join(COLUMNS), ", ".join(COLUMNS[:-1])
UNKNOWN: frozenset[str] | None = None

Columns = frozenset[str] | None
Work = tuple[dict[str, Any], Columns]
"""Type and config of a task, and the columns it makes; ``None`` when they are not known."""

expressions = st.sampled_from(
    [
        "v",
        "v > 1",
        "upper(text) = 'A  B'",
        "t between '2020-01-01' and now()",
        "v\n  > 0 -- why",
        "exists(xs, x -> x > v)",
    ]
)
predicates = st.one_of(
    expressions,
    st.sampled_from(["text = '<&>\"'", "text\t= 'ü'", "id like '%\r\n'", "length(text) > 3 and not (v = 1)"]),
)
shares = st.sampled_from(["never", "owner", "anyone"])
registry = default_registry()
spans = st.sampled_from(["500ms", "10 s", "5min", "1.5h", "1d"])
functions = st.sampled_from(["pkg.mod.function", "mod:function"])


def _kept(columns: Columns, *added: str, drop: str = "") -> Columns:
    return None if columns is None else columns - {drop} | set(added)


@st.composite
def sources(draw: st.DrawFn) -> Work:
    """A task that brings rows in."""
    files: dict[str, Any] = {"path": draw(filled_texts), "columns": COLUMNS_TEXT}
    choices: list[Work] = [
        ({"type": "read_files", "config": files}, BASE),
        ({"type": "read_files", "config": files | {"format": "csv", "header": True}}, BASE),
        ({"type": "replay", "config": files | {"time_column": "t", "speed": 2}}, BASE),
        ({"type": "replay", "config": files | {"rate_per_s": 10.5, "repeat": True}}, BASE),
        ({"type": "read_files", "config": {"path": "p", "format": "text"}}, frozenset({"value"})),
        ({"type": "rate", "config": {"rows_per_s": 1000}}, frozenset({"timestamp", "value"})),
        ({"type": "rate"}, frozenset({"timestamp", "value"})),
        ({"type": "read_socket", "config": {"port": 9999}}, frozenset({"value"})),
        (
            {"type": "read_kafka", "config": {"servers": "a:1", "topics": ["x", f"x{draw(texts)}"]}},
            frozenset({"key", "value", "topic", "partition", "offset", "timestamp"}),
        ),
        ({"type": "read_table", "config": {"url": "u", "table": "t", "by": "v", "columns": PLAIN_TEXT}}, BASE - {"xs"}),
        ({"type": "read_delta", "config": {"path": "p", "columns": COLUMNS_TEXT, "start": 7}}, BASE),
        ({"type": "opaque", "ports": {"outputs": ["out"]}, "config": {"label": draw(texts)}}, UNKNOWN),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def steps(draw: st.DrawFn, columns: Columns) -> Work:
    """A task that works on rows of these columns."""
    union: Work = ({"type": "union"}, columns)
    if columns is not None and not columns >= BASE:
        chosen: Work = draw(st.one_of(st.just(union), user_defined(columns)))
    else:
        chosen = draw(st.one_of(_row_by_row(columns), _stateful(columns), user_defined(columns)))
    return chosen


@st.composite
def _row_by_row(draw: st.DrawFn, columns: Columns) -> Work:
    into = draw(st.sampled_from(["extra", "Ünï code", "v"]))
    choices: list[Work] = [
        ({"type": "filter", "config": {"where": draw(predicates)}}, columns),
        ({"type": "range_filter", "config": {"ranges": {"v": [-1, 2.5]}}}, columns),
        ({"type": "select", "config": {"columns": ["v", "id"]}}, frozenset({"v", "id"})),
        ({"type": "drop", "config": {"columns": ["text"]}}, _kept(columns, drop="text")),
        ({"type": "derive", "config": {"columns": {into: draw(expressions)}}}, _kept(columns, into)),
        ({"type": "rename", "config": {"columns": {"v": "w"}}}, _kept(columns, "w", drop="v")),
        ({"type": "cast", "config": {"columns": {"v": "Decimal(10, 2)"}}}, columns),
        ({"type": "explode", "config": {"column": "xs", "into": "x"}}, _kept(columns, "x", drop="xs")),
        (
            {"type": "tokenise", "config": {"column": "text", "pattern": draw(filled_texts)}},
            _kept(columns, "word"),
        ),
        ({"type": "sample", "config": {"share": 0.25, "seed": 7}}, columns),
        ({"type": "union"}, columns),
        (
            {"type": "parse_json", "config": {"column": "text", "columns": "`the city` string"}},
            frozenset({"the city"}),
        ),
        (
            {"type": "parse_csv", "config": {"column": "text", "columns": "a int", "separator": ";"}},
            frozenset({"a"}),
        ),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def _stateful(draw: st.DrawFn, columns: Columns) -> Work:
    key: dict[str, Any] = {"key": ["id"]}
    window = {"time": "t", "size": draw(spans), "columns": {"n": "count(*)"}, "late_by": draw(spans)}
    choices: list[Work] = [
        ({"type": "count", "config": key}, _kept(columns, "count")),
        ({"type": "moving_average", "config": key | {"column": "v", "size": 5}}, _kept(columns, "average")),
        ({"type": "difference", "config": key | {"column": "v", "lag": 2}}, _kept(columns, "difference")),
        (
            {"type": "kalman", "config": key | {"column": "v", "first_error": draw(positive)}},
            _kept(columns, "smoothed"),
        ),
        ({"type": "dedup", "config": key}, columns),
        ({"type": "window", "config": window | key}, frozenset({"n", "id", "window_start", "window_end"})),
        (
            {"type": "window", "config": window | {"kind": "sliding", "slide": "2min"}},
            frozenset({"n", "window_start", "window_end"}),
        ),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def user_defined(draw: st.DrawFn, columns: Columns) -> Work:
    """A task whose work is the author's."""
    options = draw(st.dictionaries(texts, json_values, max_size=2))
    choices: list[Work] = [
        ({"type": "python", "config": {"function": draw(functions), "options": options}}, columns),
        ({"type": "python", "config": {"function": "f.g", "over": "arrow", "columns": COLUMNS_TEXT}}, BASE),
        ({"type": "sql", "config": {"query": "select *\nfrom `in` where v > 1"}}, UNKNOWN),
        ({"type": "opaque", "config": {"label": draw(texts), "options": options}}, UNKNOWN),
    ]
    return draw(st.sampled_from(choices))


sinks = st.one_of(
    st.just({"type": "write_console"}),
    st.builds(lambda rows: {"type": "write_console", "config": {"rows": rows}}, st.integers(1, 10**6)),
    st.builds(lambda path: {"type": "write_files", "config": {"path": path, "format": "csv"}}, filled_texts),
    st.builds(
        lambda name: {"type": "write_memory", "config": {"name": name}}, filled_texts.filter(lambda t: len(t) < 129)
    ),
    st.builds(lambda name: {"type": "write_call", "config": {"function": name}}, functions),
    st.builds(lambda url: {"type": "write_table", "config": {"url": url, "table": "t"}}, filled_texts),
    st.just({"type": "write_kafka", "config": {"servers": "a:1", "topic": "x"}}),
)


@st.composite
def service_levels(draw: st.DrawFn) -> dict[str, Any]:
    """What is asked of a dataflow, as a document has it."""
    level: dict[str, Any] = {}
    if draw(st.booleans()):
        level["throughput_min"] = draw(st.floats(0.01, 1))
    if draw(st.booleans()):
        level["throughput_tolerance"] = draw(st.floats(0, 0.99))
    if draw(st.booleans()):
        low, high = sorted((draw(positive), draw(positive)))
        level |= {"latency_max_s": high} | ({"latency_min_s": low} if low < high else {})
    if draw(st.booleans()):
        level["budget_per_h"] = draw(money)
    if draw(st.booleans()):
        worst = draw(money)
        level |= {"break_even_at_worst_per_h": worst, "break_even_at_best_per_h": round(worst + 1, 3)}
    if draw(st.booleans()):
        level["processors_max"] = draw(st.integers(1, 1_000_000))
    return level


@st.composite
def _feed(draw: st.DrawFn, source: str, columns: Columns, to: str | None = None) -> dict[str, Any] | str:
    feed: dict[str, Any] = {"from": source}
    if to is not None:
        feed["to"] = to
    routing = draw(st.integers(0, 4))
    if routing == 1:
        feed["where"] = draw(predicates) if columns is None or columns >= BASE else "1 = 1"
    if routing == 2:
        feed["key"] = ["any column", "Ünï`code"] if columns is None else sorted(columns)[:2]
    return feed if len(feed) > 1 else source


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A document that holds together, in the way that all formats share."""
    ids = draw(
        st.lists(st.one_of(st.sampled_from(ODD_NAMES), st.sampled_from("bcdefgh")), min_size=2, max_size=7, unique=True)
    )
    tasks: list[dict[str, Any]] = []
    made: list[tuple[str, Columns]] = []
    """What can be read: task or task:port, and its columns."""
    for number, name in enumerate(ids):
        if not number or draw(st.integers(0, 5)) == 0:
            work, columns = draw(sources())
            tasks.append({"id": name} | _known_cost(draw, work))
            made.append((name, columns))
            continue
        kind = draw(st.integers(0, 9))
        if kind == 0 and len(made) > 1:
            _add_join(draw, name, tasks, made)
        elif kind == 1:
            _add_ports(draw, name, tasks, made)
        elif kind == 2:
            source, columns = draw(st.sampled_from(made))
            tasks.append({"id": name} | draw(sinks) | {"inputs": [draw(_feed(source, columns))]})
        else:
            _add_step(draw, name, tasks, made)
    document: dict[str, Any] = {"name": draw(st.sampled_from(ODD_NAMES)), "tasks": draw(st.permutations(tasks))}
    if draw(st.booleans()):
        document |= {"version": 1, "owner": draw(st.sampled_from(ODD_NAMES)), "description": draw(texts)}
    if draw(st.booleans()):
        document["share"] = draw(shares)
    if draw(st.booleans()):
        chosen = draw(st.integers(0, len(tasks) - 1))
        document["tasks"] = [
            task | ({"share": draw(shares)} if n == chosen else {}) for n, task in enumerate(document["tasks"])
        ]
    document["tasks"] = [_with_policy(draw, task) for task in document["tasks"]]
    level = draw(service_levels())
    return document | ({"service_level": level} if level else {})


def _with_policy(draw: st.DrawFn, task: dict[str, Any]) -> dict[str, Any]:
    """A task that says, now and then, what becomes of rows for which it raises, and how long it may take."""
    if draw(st.integers(0, 3)):
        return task
    types = {way["type"] for way in task.get("alternates", [task])}
    policies = ["fail"] if not all(registry[kind].by_row for kind in types) else ["fail", "skip", "dead_letter"]
    budget = {"time_budget": draw(spans)} if draw(st.booleans()) else {}
    named = {"publish": f"of_{task['id']}"[:60]} if draw(st.booleans()) and task.get("inputs") is None else {}
    return task | {"on_error": draw(st.sampled_from(policies))} | budget | named


def _known_cost(draw: st.DrawFn, work: Mapping[str, Any]) -> dict[str, Any]:
    if draw(st.integers(0, 3)):
        return dict(work)
    return dict(work) | {"cost_s": draw(st.sampled_from([0, 0.004, 1e-9, 3])), "selectivity": draw(positive)}


def _add_step(draw: st.DrawFn, name: str, tasks: list[dict[str, Any]], made: list[tuple[str, Columns]]) -> None:
    source, columns = draw(st.sampled_from(made))
    others = [other for other, same in made if same == columns]
    feeds = [draw(_feed(source, columns))]
    if draw(st.integers(0, 3)) == 0:
        feeds.append(draw(_feed(draw(st.sampled_from(others)), columns)))
    work, after = draw(steps(columns))
    if draw(st.integers(0, 4)) == 0:
        labels = draw(st.lists(st.sampled_from(ODD_NAMES), min_size=1, max_size=3, unique=True))
        ways = [dict(work) | {"name": label, "value": draw(positive)} for label in labels]
        tasks.append({"id": name, "alternates": [_known_cost(draw, way) for way in ways], "inputs": feeds})
    else:
        tasks.append({"id": name} | _known_cost(draw, work) | {"inputs": feeds})
    made.append((name, after))
    fed = next((task for task in tasks if task["id"] == source and task.get("inputs")), None)
    if fed is not None and fed.get("type") != "join" and draw(st.booleans()):
        fed["inputs"] = [*fed["inputs"], {"from": name, "feedback": True}]


def _add_join(draw: st.DrawFn, name: str, tasks: list[dict[str, Any]], made: list[tuple[str, Columns]]) -> None:
    known = [(source, columns) for source, columns in made if columns is None or {"id", "t"} <= columns]
    if not known:
        return _add_step(draw, name, tasks, made)
    sides = [draw(st.sampled_from(known)), draw(st.sampled_from(known))]
    config = {"on": ["id"], "time": ["t", "t"], "within": draw(spans), "kind": draw(st.sampled_from(["inner", "left"]))}
    feeds = [draw(_feed(source, columns)) for source, columns in sides]
    tasks.append({"id": name, "type": "join", "config": config, "inputs": feeds})
    left, right = sides[0][1], sides[1][1]
    added = [] if left is None or right is None else [f"right_{c}" if c in left else c for c in right - {"id"}]
    made.append((name, _kept(left, *added) if right is not None else None))
    return None


def _add_ports(draw: st.DrawFn, name: str, tasks: list[dict[str, Any]], made: list[tuple[str, Columns]]) -> None:
    """A task with two inputs, one of which joins, and two outputs, all of names of its own."""
    inputs, outputs = ["in", "other"], ["out", "in"]
    if draw(st.booleans()):
        inputs, outputs = ["left-hand", "1"], ["hot", "cold.2"]
    sources_ = [draw(st.sampled_from(made)) for _ in range(3)]
    feeds = [
        draw(_feed(source, columns, to))
        for (source, columns), to in zip(sources_, [inputs[0], inputs[1], inputs[1]], strict=True)
    ]
    ports = {
        "inputs": [inputs[0], {"name": inputs[1], "gather": "join"}],
        "outputs": [outputs[0], {"name": outputs[1], "columns": "`a b` string, s struct<X:int,y:array<date>>"}],
    }
    tasks.append({"id": name, "type": "opaque", "ports": ports, "inputs": feeds})
    made += [(f"{name}:{outputs[0]}", UNKNOWN), (f"{name}:{outputs[1]}", frozenset({"a b", "s"}))]


dataflows: st.SearchStrategy[Dataflow] = documents().map(lambda document: parse(json.dumps(document), "json").dataflow)
