"""Generated dataflows for benchmarks and tests."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headgate.documents import parse
from headgate.model.config import Config
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, PortName, TaskId
from headgate.model.start import Start
from headgate.model.stream import Stream
from headgate.model.task import Alternate, Task

__all__ = ["beside", "chain", "dataflow_of", "layered_document", "parquet_sink", "poisson_times", "relational_chain"]


def dataflow_of(name: str, tasks: Iterable[Mapping[str, Any]], **more: Any) -> Dataflow:
    """A dataflow from the documents of its tasks."""
    return parse(json.dumps({"name": name, **more, "tasks": list(tasks)}), "json").dataflow


def beside(flow: Dataflow, other: str) -> Dataflow:
    """The dataflow, beginning where another one stands: it does not catch up."""
    return replace(flow, start=Start.parse(f"with {other}"))


def parquet_sink(folder: Path) -> dict[str, Any]:
    """The document of a task that writes Parquet files, without its inputs."""
    return {"type": "write_files", "config": {"path": str(folder), "format": "parquet"}}


def poisson_times(steps: Iterable[tuple[float, float]], draw: random.Random) -> Iterator[float]:
    """When rows arrive by a Poisson process with rates (1/s), each for some seconds."""
    begun = 0.0
    for rate, seconds in steps:
        at = begun + draw.expovariate(rate)
        while at < begun + seconds:
            yield at
            at += draw.expovariate(rate)
        begun += seconds


def layered_document(tasks: int, seed: int) -> dict[str, Any]:
    """A dataflow of that many tasks as a document: sources, a mix of steps, each with its own options, then sinks.

    Every expression is another one, so nothing is gained from having seen one before; a tenth of the steps have two
    inputs, a tenth two alternates, and some streams are routed by key or predicate.
    """
    draw = random.Random(seed)
    sources = max(tasks // 100, 1)
    listed: list[dict[str, Any]] = [
        {
            "id": f"source{i}",
            "type": "read_files",
            "config": {"path": f"in/{i}", "columns": "id string, t timestamp, v double"},
        }
        for i in range(sources)
    ]
    unread = [task["id"] for task in listed]
    for i in range(max(tasks - 2 * sources, 1)):
        feeds: list[Any] = [unread.pop(draw.randrange(len(unread)))]
        if draw.random() < 0.1 and i:
            feeds.append(f"step{draw.randrange(i)}")
        if draw.random() < 0.05:
            feeds[0] = {"from": feeds[0], "key": ["id"]}
        elif draw.random() < 0.05:
            feeds[0] = {"from": feeds[0], "where": f"v < {draw.random()}"}
        listed.append({"id": f"step{i}", **_work(draw), "inputs": feeds})
        unread.append(f"step{i}")
    listed += [
        {"id": f"sink{i}", "type": "write_files", "config": {"path": f"out/{i}"}, "inputs": [last]}
        for i, last in enumerate(unread)
    ]
    return {"name": "generated", "owner": "bench", "tasks": listed}


def _work(draw: random.Random) -> dict[str, Any]:
    number = draw.random()
    works: list[dict[str, Any]] = [
        {"type": "filter", "config": {"where": f"v > {number} and id <> 'k{draw.randrange(10**9)}'"}},
        {"type": "derive", "config": {"columns": {"v": f"v * {number} + {draw.random()}"}}},
        {"type": "range_filter", "config": {"ranges": {"v": [-number, draw.random() + 1]}}},
        {"type": "kalman", "config": {"key": ["id"], "column": "v", "sensor_noise": number, "into": "v"}},
        {
            "type": "moving_average",
            "config": {"key": ["id"], "column": "v", "size": draw.randrange(1, 90_000), "into": "v"},
        },
    ]
    if draw.random() < 0.1:
        first, second = draw.sample(works[:3], 2)
        return {"alternates": [{**first, "value": 0.7}, second]}
    return draw.choice(works)


def chain(name: str, draw: random.Random, sources: int) -> Dataflow:
    """A dataflow of seven tasks in a row, of which about half are likely to run already for others.

    A source of so many, its parser, two steps of twenty kinds each, and three tasks that no other dataflow has.
    """
    shared = [f"source{draw.randrange(sources)}", "parse", f"clean{draw.randrange(20)}", f"shape{draw.randrange(20)}"]
    labels = [*shared, f"look-{name}", f"warn-{name}", f"store-{name}"]
    return _in_a_row(name, [("opaque", {"label": label}) for label in labels])


def relational_chain(name: str, draw: random.Random, sources: int) -> Dataflow:
    """A dataflow of five tasks in a row: a source of so many, two filters and a projection of few kinds, and a sink."""
    works: list[tuple[str, dict[str, Any]]] = [
        ("read_files", {"path": f"in/{draw.randrange(sources)}", "columns": "id string, v double, w double, k bigint"}),
        ("filter", {"where": f"v > {draw.randrange(20)} and id is not null"}),
        ("filter", {"where": f"k in ({draw.randrange(5)}, {draw.randrange(5, 10)})"}),
        ("select", {"columns": draw.choice((["id", "v"], ["id", "v", "w"], ["v", "k"]))}),
        ("write_files", {"path": f"out/{name}"}),
    ]
    return _in_a_row(name, works)


def _in_a_row(name: str, works: list[tuple[str, dict[str, Any]]]) -> Dataflow:
    tasks = (Task(TaskId(f"t{n}"), (Alternate(kind, kind, Config(config)),)) for n, (kind, config) in enumerate(works))
    ends = ((TaskId(f"t{n}"), TaskId(f"t{n + 1}")) for n in range(len(works) - 1))
    streams = (Stream(source, PortName("out"), target, PortName("in")) for source, target in ends)
    return Dataflow(DataflowName(name), tuple(tasks), tuple(streams))
