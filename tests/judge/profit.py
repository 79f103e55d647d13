"""A judge of what a run was worth: throughput, value, violations, core-hours, profit and bill, from raw files alone.

It imports nothing of Headgate (a test checks that), and knows what the outside world saw. A folder holds:

::

    generated.jsonl     {"id", "at"}: when each row came
    sinks/NAME.jsonl    {"id", "at"} and the alternate that made it, {"label"}: when each row was at a sink
    promises.json       by dataflow: its sinks, its tasks, the values of labels, what was agreed, break-even costs
    usage.jsonl         {"at", "tasks": [[user, ...], ...]}: who used each task from then on
    acquisitions.jsonl  machines: acquired, ready, released or lost, each with when
    billing.json        {"period_s", "least_s"}

Times are seconds since 1970. ``python -m tests.judge.profit FOLDER BEGAN ENDED WINDOW_S`` prints the verdict as JSON.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

__all__ = ["Judged", "JudgedDataflow", "core_hours", "judge_profit", "machine_bill", "money", "omega_of", "paid"]

HOUR_S = 3_600


@dataclass(frozen=True)
class JudgedDataflow:
    """What a dataflow got, and what that was worth."""

    omega: float
    """Relative throughput, the mean over windows."""

    gamma: float
    theta: float | None
    latency_s: float | None
    """Mean over rows."""

    violations: float
    """Share of the windows in which throughput was below its band or latency above its limit."""

    cost: str
    """Of the whole time, paid periods to their end: exact, as a fraction."""

    cost_per_h: float
    """Of what was used, an hour's worth."""


@dataclass(frozen=True)
class Judged:
    """The verdict."""

    dataflows: Mapping[str, JudgedDataflow]
    theta: float | None
    core_hours: float
    bill: str
    """What all machines cost: exact, as a fraction."""


@dataclass
class Machine:
    """A machine from when it was asked for until it was gone."""

    name: str
    cores: int
    price_per_h: Fraction
    acquired: float
    gone: float | None = None

    def until(self, now: float) -> float:
        """Until when it is counted; one that comes later is not."""
        return max(now if self.gone is None else min(self.gone, now), self.acquired)


@dataclass
class Rows:
    """When rows came, and when they were at each sink; both sorted by time."""

    came: list[tuple[float, Any]] = field(default_factory=list)
    sinks: dict[str, list[tuple[float, Any, Any]]] = field(default_factory=dict)


def judge_profit(folder: Path, began: float, ended: float, window_s: float) -> Judged:
    """Judge a run between two moments, window by window."""
    rows, machines = _rows(folder), _machines(folder)
    promises = json.loads((folder / "promises.json").read_text())
    usage = [(line["at"], line["tasks"]) for line in _lines(folder / "usage.jsonl")]
    whole, lines = machine_bill(machines, usage, json.loads((folder / "billing.json").read_text()), ended)
    used = _shares(machines, usage, began, ended)
    judged = {
        name: _dataflow(promise, rows, (began, ended, window_s), lines.get(name, Fraction()), used.get(name, 0.0))
        for name, promise in promises.items()
    }
    profits = [each.theta for each in judged.values() if each.theta is not None]
    return Judged(judged, sum(profits) if profits else None, core_hours(machines, began, ended), str(whole))


def _dataflow(
    promise: Mapping[str, Any], rows: Rows, time: tuple[float, float, float], cost: Fraction, used: float
) -> JudgedDataflow:
    began, ended, window_s = time
    omegas, bad, windows = [], 0, max(round((ended - began) / window_s), 1)
    for number in range(windows):
        since, until = began + number * window_s, began + (number + 1) * window_s
        omega = sum(omega_of(rows, sink, want, since, until) for sink, want in promise["sinks"].items())
        omegas.append(omega / len(promise["sinks"]))
        late = _latency(rows, promise["sinks"], since, until)
        limit = promise.get("latency_max_s")
        bad += omegas[-1] < promise["throughput_min"] - promise["throughput_tolerance"] or (
            limit is not None and late is not None and late > limit
        )
    gamma = _gamma(promise, rows, began, ended)
    per_h = used * HOUR_S / (ended - began)
    theta = None
    if promise.get("break_even_at_best_per_h") is not None:
        best, worst = (float(promise[f"break_even_at_{which}_per_h"]) for which in ("best", "worst"))
        lowest = 1 - sum(1 - min(values.values()) for values in promise["values"].values()) / int(promise["tasks"])
        theta = gamma - 1 - (1 - lowest) / (best - worst) * (per_h - best)
    latency = _latency(rows, promise["sinks"], began, ended)
    return JudgedDataflow(sum(omegas) / windows, gamma, theta, latency, bad / windows, str(cost), per_h)


def omega_of(rows: Rows, sink: str, want: Mapping[str, int], since: float, until: float) -> float:
    """Rows that reached a sink in a window, over those that came by its end and had not reached it before.

    A sink gets the rows whose number leaves a remainder of ``of``: ``{"of": 1, "is": 0}`` is all of them.
    """
    before = done = 0
    for at, number, _ in rows.sinks[sink]:
        assert number % want["of"] == want["is"], f"row {number} does not belong to sink {sink}"
        before += int(at < since)
        done += int(since <= at < until)
    could = -before
    for at, number in rows.came:
        could += int(at < until and number % want["of"] == want["is"])
    return min(done / float(could), 1.0) if could > 0 else 1.0


def _latency(rows: Rows, sinks: Mapping[str, Any], since: float, until: float) -> float | None:
    came = {number: at for at, number in rows.came}
    waits = [at - came[number] for sink in sinks for at, number, _ in rows.sinks[sink] if since <= at < until]
    return sum(waits) / len(waits) if waits else None


def _gamma(promise: Mapping[str, Any], rows: Rows, began: float, ended: float) -> float:
    """Mean value over time. A task's alternate is that of the last row to come out, whose label names it."""
    lost = 0.0
    for task, values in promise["values"].items():
        # As rows come out: those of one epoch are there together.
        labels = sorted((at, label[task]) for sink in promise["sinks"] for at, _, label in rows.sinks[sink] if label)
        at, seen = began, next((label for when, label in reversed(labels) if when <= began), None)
        if seen is None:  # nothing had come out yet
            seen = labels[0][1] if labels else max(values, key=values.__getitem__)
        for when, label in labels:
            if when > at and label != seen:
                stop = min(when, ended)
                lost += (1 - values[seen]) * max(stop - at, 0.0)
                at, seen = max(stop, at), label
        lost += (1 - values[seen]) * max(ended - at, 0.0)
    return 1 - lost / (ended - began) / int(promise["tasks"])


def core_hours(machines: Sequence[Machine], began: float, ended: float) -> float:
    """Cores that were paid for, times hours."""
    spans = ((m.cores, max(m.until(ended) - max(m.acquired, began), 0.0)) for m in machines)
    return sum(cores * seconds for cores, seconds in spans) / HOUR_S


def machine_bill(
    machines: Sequence[Machine], usage: Sequence[tuple[float, Any]], billing: Mapping[str, Any], ended: float
) -> tuple[Fraction, dict[str, Fraction]]:
    """What all machines cost until now, in whole periods, and each dataflow's part of it; exact.

    Second by second a machine is split over the tasks of that second, equally, and a task over its users. When a
    machine goes, the rest of what is paid is for the users of its last moment.
    """
    whole, lines = Fraction(), dict[str, Fraction]()
    for machine in machines:
        until = Fraction(machine.until(ended))
        acquired, price_s = Fraction(machine.acquired), machine.price_per_h / HOUR_S
        for since, to, tasks in _spans(usage, acquired, until):
            _split(lines, price_s * (to - since), tasks)
        cost = machine.price_per_h * paid(until - acquired, billing) / HOUR_S if until > acquired else Fraction()
        if machine.gone is not None and machine.gone <= ended:
            _split(lines, cost - price_s * (until - acquired), _at(usage, until))
        else:
            cost = price_s * (until - acquired)
        whole += cost
    return whole, lines


def paid(held_s: Fraction, billing: Mapping[str, Any]) -> Fraction:
    """Seconds that are paid for a machine held for so long: whole periods, the least at least."""
    period = Fraction(billing["period_s"])
    return ceil(max(held_s, Fraction(billing["least_s"])) / period) * period


def money(text: str, places: int = 4) -> str:
    """An exact amount as people read it."""
    return f"{float(Fraction(text)):.{places}f}"


def _shares(
    machines: Sequence[Machine], usage: Sequence[tuple[float, Any]], began: float, ended: float
) -> dict[str, float]:
    lines: dict[str, Fraction] = {}
    for machine in machines:
        since, until = Fraction(max(machine.acquired, began)), Fraction(machine.until(ended))
        for first, last, tasks in _spans(usage, since, until):
            _split(lines, machine.price_per_h / HOUR_S * (last - first), tasks)
    return {name: float(cost) for name, cost in lines.items()}


def _split(lines: dict[str, Fraction], cost: Fraction, tasks: Sequence[Sequence[str]]) -> None:
    for users in tasks:
        for user in users:
            lines[user] = lines.get(user, Fraction()) + cost / len(tasks) / len(users)


def _spans(
    usage: Sequence[tuple[float, Any]], since: Fraction, until: Fraction
) -> Iterator[tuple[Fraction, Fraction, Any]]:
    """Spans between two moments in which the same tasks ran."""
    moments = [Fraction(at) for at, _ in usage]
    edges = [since, *(at for at in moments if since < at < until), until]
    for first, last in pairwise(edges):
        if last > first:
            yield first, last, _at(usage, first, right=True)


def _at(usage: Sequence[tuple[float, Any]], moment: Fraction, *, right: bool = False) -> Any:
    """The tasks just before a moment, or from it on."""
    moments = [Fraction(at) for at, _ in usage]
    place = (bisect_right if right else bisect_left)(moments, moment)
    return usage[place - 1][1] if place else []


def _rows(folder: Path) -> Rows:
    rows = Rows(sorted((line["at"], line["id"]) for line in _lines(folder / "generated.jsonl")))
    for file in (folder / "sinks").glob("*.jsonl"):
        held = [(line["at"], line["id"], line.get("label")) for line in _lines(file)]
        rows.sinks[file.stem] = sorted(held, key=lambda row: row[:2])
    return rows


def _machines(folder: Path) -> list[Machine]:
    machines: dict[str, Machine] = {}
    for event in _lines(folder / "acquisitions.jsonl"):
        name, at = event["machine"], event["at"]
        if event["event"] == "acquired":
            kind = event["vm_class"]
            machines[name] = Machine(name, kind["cores"], Fraction(str(kind["price_per_h"])), at)
        elif event["event"] in ("released", "lost"):
            machines[name].gone = at
    return list(machines.values())


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


if __name__ == "__main__":
    print(json.dumps(asdict(judge_profit(Path(sys.argv[1]), *map(float, sys.argv[2:5])))))
