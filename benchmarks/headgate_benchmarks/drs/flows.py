"""The dataflows of ``headgate bench drs``: operators that wait, in a chain and in a loop, fed by a Poisson process."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.model.dataflow import Dataflow
from headgate_benchmarks.workloads import dataflow_of, poisson_times

__all__ = ["COLUMNS", "LOOP_SHARE", "SERVICE", "SINK", "Service", "chain", "loop", "record"]

COLUMNS = "t double, id bigint, rounds int"
SINK = "done"

LOOP_SHARE = 0.3
"""Of the rows that the loop's second operator has served, so many go back to its first."""


@dataclass(frozen=True, slots=True)
class Service:
    """How an operator serves: mean and squared coefficient of variation of its (gamma) service times."""

    task: str
    mean_s: float
    scv: float


SERVICE = (Service("extract", 0.12, 0.25), Service("match", 0.16, 0.25), Service("aggregate", 0.04, 0.25))


def record(path: Path, rates: Sequence[tuple[float, float]], seed: int) -> int:
    """Write a recording in which rows come by a Poisson process with rates (1/s), each for some seconds.

    How often a row has to go round a loop is drawn too: again with the chance :data:`LOOP_SHARE`. Returns how many rows
    there are.
    """
    draw = random.Random(seed)
    times = list(poisson_times(rates, draw))
    lines = []
    for number, at in enumerate(times):
        rounds = 0
        while draw.random() < LOOP_SHARE:
            rounds += 1
        lines.append(json.dumps({"t": round(at, 4), "id": seed * 1_000_000 + number, "rounds": rounds}) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def _source(recording: Path) -> dict[str, Any]:
    config = {"path": str(recording), "columns": COLUMNS, "time_column": "t"}
    return {"id": "in", "type": "replay", "config": config}


def _operator(service: Service, inputs: Sequence[Any], *, last: bool = False) -> dict[str, Any]:
    options = {"task": service.task, "mean_s": service.mean_s, "scv": service.scv, "last": last}
    config = {"function": "headgate_benchmarks.waiting.serve", "options": options}
    return {"id": service.task, "type": "python", "config": config, "inputs": list(inputs)}


def _flow(name: str, tasks: Sequence[dict[str, Any]], sink_inputs: Sequence[Any]) -> Dataflow:
    sink = {"id": SINK, "type": "write_memory", "config": {"name": name}, "inputs": list(sink_inputs)}
    return dataflow_of(name, [*tasks, sink])


def chain(name: str, recording: Path) -> Dataflow:
    """Three operators in a row."""
    first, second, third = SERVICE
    operators = [_operator(first, ["in"]), _operator(second, [first.task]), _operator(third, [second.task])]
    return _flow(name, [_source(recording), *operators], [third.task])


def loop(name: str, recording: Path) -> Dataflow:
    """Three operators, of which the second sends some of its rows back to the first, through the exchange."""
    first, second, third = SERVICE
    again = {"from": second.task, "where": "rounds >= 0", "feedback": True}
    operators = [
        _operator(first, ["in", again]),
        _operator(second, [first.task], last=True),
        _operator(third, [{"from": second.task, "where": "rounds < 0"}]),
    ]
    return _flow(name, [_source(recording), *operators], [third.task])
