"""Evaluates dataflows of relational tasks with DuckDB: what each sink gets, independently of any normal form.

What a task does is taken from the runtime's own description of it, as SQL; DuckDB agrees with Spark on everything used
here: three-valued logic, the order of NaN, comparison of texts.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import duckdb
import sqlglot

from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import TaskId
from headgate.model.stream import ByPredicate
from headgate.model.work import RowExpression
from headgate.tasks.registry import default_registry
from headgate.tasks.windows import EventTimeWindow

Rows = Counter[tuple[Any, ...]]

COLUMNS = "id string, k int, n bigint, v double, w double, ok boolean, t timestamp"


def table(rows: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    """A database with the rows that every source reads."""
    database = duckdb.connect(":memory:")
    database.execute(
        "create table source (id varchar, k integer, n bigint, v double, w double, ok boolean, t timestamp)"
    )
    for row in rows:
        database.execute("insert into source values (?, ?, ?, ?, ?, ?, ?)", list(row.values()))
    return database


def outcome(dataflow: Dataflow, database: duckdb.DuckDBPyConnection) -> dict[str, tuple[tuple[str, ...], Rows]]:
    """Each sink by name: its columns and its rows, as often as they come."""
    graph = Graph(dataflow)
    registry = default_registry()
    queries: dict[TaskId, tuple[str, tuple[str, ...]]] = {}
    sinks = {}
    for name in graph.order():
        task = graph.tasks[name]
        options: Any = registry[task.type].config.model_validate(task.config.as_dict())
        if not graph.feeds[name]:
            queries[name] = ("select * from source", tuple(part.split()[0] for part in COLUMNS.split(", ")))
            continue
        (stream,) = graph.feeds[name]
        query, names = queries[stream.source]
        if isinstance(stream.routing, ByPredicate):
            query = f"select * from ({query}) where {_duck(stream.routing.where)}"
        if task.type == "write_memory":
            sinks[options.name] = (names, _fetched(database, query))
        elif isinstance(options, EventTimeWindow):
            queries[name] = _window(query, options)
        else:
            work = default_registry()[task.type].work
            assert isinstance(work, RowExpression)
            does = work.sql(options, names)
            where = f" where {_duck(does.condition)}" if does.condition else ""
            columns = does.columns or [(column, f"`{column}`") for column in names]
            listed = ", ".join(f'{_duck(expression)} as "{column}"' for column, expression in columns)
            queries[name] = (f"select {listed} from ({query}){where}", does.names)
    return sinks


def _window(query: str, options: EventTimeWindow) -> tuple[str, tuple[str, ...]]:
    keys = "".join(f', "{key}"' for key in options.key)
    aggregates = "".join(f', {_duck(text)} as "{name}"' for name, text in options.columns.items())
    bucket = f"time_bucket(interval '5 minutes', \"{options.time}\")"
    made = f"select {bucket} as window_start, {bucket} + interval '5 minutes' as window_end{keys}{aggregates}"
    return (
        f'{made} from ({query}) where "{options.time}" is not null group by all',
        ("window_start", "window_end", *options.key, *options.columns),
    )


def _duck(expression: str) -> str:
    return sqlglot.transpile(expression, read="spark", write="duckdb")[0]


def _fetched(database: duckdb.DuckDBPyConnection, query: str) -> Rows:
    return Counter(tuple(map(_comparable, row)) for row in database.execute(query).fetchall())


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}")
    return value
