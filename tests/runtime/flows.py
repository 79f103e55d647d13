"""Random dataflows over the built-in task types, and what they must put out: computed dataflow by dataflow, epoch by
epoch, with plain batch Spark for stateless tasks and plain Python for keyed ones. Nothing here uses the runtime."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.stream import ByPredicate
from headgate.model.task import Alternate

COLUMNS = "id long, k string, g long, v double, text string"

Rows = list[dict[str, Any]]

# Few choices at each step, so that random dataflows overlap.
STATELESS: list[dict[str, Any]] = [
    {"type": "filter", "config": {"where": "v > 0"}},
    {"type": "filter", "config": {"where": "g % 2 = 0 or v is null"}},
    {"type": "range_filter", "config": {"ranges": {"v": [-5, 20], "g": [0, 6]}}},
    {"type": "range_filter", "config": {"ranges": {"v": [-5, 20]}, "outside": "null"}},
    {"type": "derive", "config": {"columns": {"v": "v * 2", "w": "concat(k, '-', v)"}}},
    {"type": "derive", "config": {"columns": {"n": "case when g > 3 then g end"}}},
    {"type": "cast", "config": {"columns": {"g": "string"}}},
    {"type": "sample", "config": {"share": 0.5, "seed": 3}},
    {"type": "union", "config": {}},
]
FRAMED: list[dict[str, Any]] = [{"type": "tokenise", "config": {"column": "text"}}]
LAST: list[dict[str, Any]] = [
    {"type": "select", "config": {"columns": ["v", "id"]}},
    {"type": "drop", "config": {"columns": ["text"]}},
    {"type": "rename", "config": {"columns": {"v": "value"}}},
]
KEYED: list[dict[str, Any]] = [
    {"type": "count", "config": {"key": ["k"]}},
    {"type": "kalman", "config": {"key": ["k"], "column": "v", "into": "s"}},
    {"type": "moving_average", "config": {"key": ["k"], "column": "v", "size": 3, "into": "s"}},
    {"type": "difference", "config": {"key": ["k"], "column": "v", "lag": 2, "into": "s"}},
    {"type": "dedup", "config": {"key": ["k", "g"]}},
    {"type": "interpolate", "config": {"key": ["k"], "columns": ["v"], "size": 3}},
]


@st.composite
def documents(draw: st.DrawFn, name: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """A dataflow: a chain from the source, which may branch, meet again, and end in one to three sinks."""
    tasks: list[dict[str, Any]] = [{"id": "source", **source}]
    ends = ["source"]
    keyed = False
    for number in range(draw(st.integers(1, 5))):
        before = draw(st.sampled_from(ends[-2:]))
        if draw(st.integers(0, 3)) == 0 and not keyed:
            keyed = True
            work = draw(st.sampled_from(KEYED))
            if draw(st.booleans()):
                work = {"alternates": [{**work, "name": "a"}, {**KEYED[2], "name": "b", "value": 0.5}]}
                work = (
                    work
                    if "s" in str(work["alternates"][0]["config"].get("into", ""))
                    else draw(st.sampled_from(KEYED))
                )
        elif draw(st.integers(0, 5)) == 0:
            work = draw(st.sampled_from(FRAMED))
        else:
            work = draw(st.sampled_from(STATELESS))
            if draw(st.integers(0, 3)) == 0:
                other = draw(st.sampled_from(STATELESS[:3]))
                first = draw(st.sampled_from(STATELESS[:3]))
                if other != first:
                    work = {"alternates": [{**first, "name": "a"}, {**other, "name": "b", "value": 0.5}]}
        task = {"id": f"t{number}", **work, "inputs": [before]}
        if work.get("type") == "union" and len(ends) > 1 and not keyed and before == "source":
            task["inputs"] = [before, {"from": "source", "where": "g > 2"}]
            keyed = True  # streams interleave in no order, and what a keyed task makes of them would depend on it
        elif draw(st.integers(0, 4)) == 0:
            task["inputs"] = [{"from": before, "where": "g <> 1"}]
        tasks.append(task)
        ends.append(task["id"])
    sinks = draw(st.integers(1, 3))
    for number in range(sinks):
        before = ends[-1] if number == 0 else draw(st.sampled_from(ends))
        if draw(st.booleans()):
            tasks.append({"id": f"last{number}", **draw(st.sampled_from(LAST)), "inputs": [before]})
            before = f"last{number}"
        sink = {
            "id": f"out{number}",
            "type": "write_memory",
            "config": {"name": f"{name}.{number}"},
            "inputs": [before],
        }
        tasks.append(sink)
    return {"name": name, "tasks": tasks}


def dataflow_of(document: dict[str, Any]) -> Dataflow:
    return parse(json.dumps(document), "json").dataflow


class Expected:
    """Computes what a dataflow's sinks get, one epoch after the other."""

    def __init__(self, spark: SparkSession, dataflow: Dataflow) -> None:
        self.spark = spark
        self.graph = Graph(dataflow)
        self.order = self.graph.order()
        self.states: dict[tuple[str, str], dict[Any, Any]] = {}
        self.sinks: dict[str, Rows] = {}

    def epoch(self, file: Path, active: Callable[[str], Alternate]) -> None:
        """Run one input file through the dataflow; ``active`` tells the active alternate of a task."""
        frames: dict[str, DataFrame] = {"source": self.spark.read.schema(COLUMNS).json(str(file))}
        for task_id in self.order[1:] if self.order[0] == "source" else self.order:
            if task_id == "source":
                continue
            entering = []
            for stream in self.graph.feeds[task_id]:
                frame = frames[stream.source]
                if isinstance(stream.routing, ByPredicate):
                    frame = frame.where(stream.routing.where)
                entering.append(frame)
            rows = entering[0]
            for more in entering[1:]:
                rows = rows.unionByName(more)
            way = active(task_id)
            config = way.config.as_dict()
            if way.type == "write_memory":
                self.sinks.setdefault(str(config["name"]), []).extend(row.asDict() for row in rows.collect())
            elif way.type in REFERENCE:
                frames[task_id] = REFERENCE[way.type](rows, config)
            else:
                frames[task_id] = self._keyed(task_id, way, rows, config)
            self.passed(task_id, rows, frames.get(task_id))

    def passed(self, task_id: str, rows_in: DataFrame, rows_out: DataFrame | None) -> None:
        """Told of what went into every task and came out of it; for those who want to know."""

    def _keyed(self, task_id: str, way: Alternate, rows: DataFrame, config: dict[str, Any]) -> DataFrame:
        states = self.states.setdefault((task_id, way.name), {})
        made = []
        ordered = sorted(enumerate(rows.collect()), key=lambda pair: (pair[1]["id"], pair[0]))
        for _, row in ordered:
            key = tuple(row[name] for name in config["key"])
            result = KEYED_REFERENCE[way.type](states, key, row, config)
            if way.type == "dedup":
                if result:
                    made.append(row.asDict())
            elif way.type == "interpolate":
                made.append({**row.asDict(), "v": result})
            else:
                into = config.get("into", {"count": "count"}.get(way.type, "s"))
                made.append({**row.asDict(), into: result})
        schema = StructType(list(rows.schema.fields))
        if way.type not in ("dedup", "interpolate"):
            schema = schema.add(config.get("into", "count"), "long" if way.type == "count" else "double")
        return self.spark.createDataFrame(made, schema)


def _range(rows: DataFrame, config: dict[str, Any]) -> DataFrame:
    for name, (low, high) in config["ranges"].items():
        if config.get("outside") == "null":
            inside = (F.col(name) >= low) & (F.col(name) <= high)
            rows = rows.withColumn(name, F.when(inside, F.col(name)))
            continue
        rows = rows.where((F.col(name) >= low) & (F.col(name) <= high))
    return rows


def _derive(rows: DataFrame, config: dict[str, Any]) -> DataFrame:
    return rows.withColumns({name: F.expr(text) for name, text in config["columns"].items()})


def _sample(rows: DataFrame, config: dict[str, Any]) -> DataFrame:
    hashed = F.expr(f"xxhash64({', '.join(rows.columns)}, {config['seed']}L)")
    return rows.where(F.pmod(hashed, F.lit(1_000_000)) < config["share"] * 1e6)


def _tokenise(rows: DataFrame, config: dict[str, Any]) -> DataFrame:
    words = F.explode(F.split(F.lower(F.col(config["column"])), r"\W+"))
    return rows.withColumn("word", words).where("word <> ''")


REFERENCE: dict[str, Callable[[DataFrame, dict[str, Any]], DataFrame]] = {
    "filter": lambda rows, config: rows.where(config["where"]),
    "range_filter": _range,
    "derive": _derive,
    "cast": lambda rows, config: rows.withColumns({n: F.col(n).try_cast(t) for n, t in config["columns"].items()}),
    "sample": _sample,
    "union": lambda rows, _: rows,
    "select": lambda rows, config: rows.select(*config["columns"]),
    "drop": lambda rows, config: rows.drop(*config["columns"]),
    "rename": lambda rows, config: rows.withColumnsRenamed(config["columns"]),
    "tokenise": _tokenise,
}


def _count(states: dict[Any, Any], key: Any, row: Any, config: dict[str, Any]) -> Any:
    del row, config
    states[key] = states.get(key, 0) + 1
    return states[key]


def _average(states: dict[Any, Any], key: Any, row: Any, config: dict[str, Any]) -> Any:
    if row[config["column"]] is None:
        return None
    values = states.setdefault(key, [])
    values.append(row[config["column"]])
    last = values[-config.get("size", 10) :]
    return sum(last) / len(last)


def _difference(states: dict[Any, Any], key: Any, row: Any, config: dict[str, Any]) -> Any:
    if row[config["column"]] is None:
        return None
    values = states.setdefault(key, [])
    values.append(row[config["column"]])
    lag = config.get("lag", 1)
    return values[-1] - values[-1 - lag] if len(values) > lag else None


def _kalman(states: dict[Any, Any], key: Any, row: Any, config: dict[str, Any]) -> Any:
    if row[config["column"]] is None:
        return None
    x, p = states.get(key, (0.0, 30.0))
    p = p + 0.125
    gain = p / (p + 0.32)
    x = x + gain * (row[config["column"]] - x)
    states[key] = (x, (1 - gain) * p)
    return x


def _dedup(states: dict[Any, Any], key: Any, row: Any, config: dict[str, Any]) -> Any:
    del row, config
    return key not in states and states.setdefault(key, True)


def _interpolate(states: dict[Any, Any], key: Any, row: Any, config: dict[str, Any]) -> Any:
    values = states.setdefault(key, [])
    if row["v"] is not None:
        values.append(row["v"])
        return row["v"]
    last = values[-config["size"] :]
    return sum(last) / len(last) if last else None


KEYED_REFERENCE: dict[str, Callable[[dict[Any, Any], Any, Any, dict[str, Any]], Any]] = {
    "count": _count,
    "moving_average": _average,
    "difference": _difference,
    "kalman": _kalman,
    "dedup": _dedup,
    "interpolate": _interpolate,
}


def multiset(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Rows regardless of order; numbers to 9 digits, since sums may be added up in another order."""
    return Counter(repr(sorted((name, _rounded(value)) for name, value in row.items())) for row in rows)


def _rounded(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


def make_rows(number: int, count: int, seed: int) -> Rows:
    """Rows with nulls, repetitions and odd texts; ids rise from file to file."""
    import random

    draw = random.Random(seed * 1_000 + number)
    return [
        {
            "id": number * 10_000 + n,
            "k": f"k{draw.randrange(4)}",
            "g": draw.randrange(8),
            "v": None if draw.random() < 0.1 else round(draw.uniform(-20, 40), 2),
            "text": draw.choice(["to be or not to be", "Die Würde", "", "a-b_c  d", "'quoted' \"twice\""]),
        }
        for n in range(count)
    ]


def drop_file(folder: Path, number: int, rows: Rows) -> Path:
    """Put a file of JSON lines into a folder, whole; Spark takes files in the order of their times."""
    hidden = folder.parent / f".{folder.name}.{number}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    os.utime(hidden, (1e9 + number, 1e9 + number))
    target = folder / f"{number:05d}.json"
    hidden.rename(target)
    return target
