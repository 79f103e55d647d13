"""Replay of a live run: its observations become the rates, costs and machines of a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

import numpy as np

from headgate.errors import InputError
from headgate.model.arrays import Floats
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.model.cluster.observation import FragmentObservation, Observation, TaskObservation
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.model.config import Config
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, PortName, Signature, TaskId
from headgate.model.stream import Stream
from headgate.model.task import Alternate, Port, Ports, Task
from headgate.simulation.policies import Deployed
from headgate.simulation.rates import ArrivalRate, Recorded
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator
from headgate.simulation.variability import STEADY, TracePool

__all__ = ["Gap", "gap", "observed_pool", "observed_rates"]


def _even(observations: Sequence[Observation], counts: Sequence[float]) -> tuple[Floats, float]:
    """Counts of uneven intervals as rates over even ones; the total stays."""
    lengths = np.array([each.seconds for each in observations])
    every_s = float(np.median(lengths))
    edges = np.concatenate([[0.0], np.cumsum(lengths)])
    total = np.concatenate([[0.0], np.cumsum(counts)])
    intervals = max(1, round(edges[-1] / every_s))
    every_s = edges[-1] / intervals
    upto = np.interp(np.arange(intervals + 1) * every_s, edges, total)
    return np.diff(upto) / every_s, every_s


def _observed(observations: Sequence[Observation]) -> list[Observation]:
    """Intervals in which something was measured; the first of a run may be empty."""
    measured = [each for each in observations if each.seconds > 0]
    if len(measured) < 2:
        raise InputError("BAD_OBSERVATIONS", f"{len(measured)} intervals were observed; a replay needs two at least")
    return measured


def observed_rates(observations: Sequence[Observation], sources: Mapping[str, Signature]) -> Mapping[str, Recorded]:
    """Arrivals at each source: rows read, plus the growth of the backlog."""
    seen = _observed(observations)
    recorded = {}
    for name, signature in sources.items():
        taken, waiting = [], []
        for each in seen:
            task = _task(each, signature, name)
            fragment = next((f for f in each.fragments if task is not None and task.task in f.tasks), None)
            taken.append(0 if task is None else task.rows_in)
            behind = None if task is None else task.rows_waiting
            waiting.append(float(behind if behind is not None else fragment.rows_behind or 0 if fragment else 0))
        if not any(taken):
            message = f"source '{name}' was not observed: no interval has rows that it read"
            raise InputError("BAD_OBSERVATIONS", f"{message}; is this the dataflow that ran?")
        came = np.maximum(np.array(taken) + np.diff(waiting, prepend=0.0), 0.0)
        rates, every_s = _even(seen, came.tolist())
        recorded[name] = Recorded(tuple(rates.tolist()), every_s)
    return recorded


def _task(observation: Observation, signature: Signature, name: str) -> TaskObservation | None:
    by_signature = next((task for task in observation.tasks if task.task == signature), None)
    return by_signature or next((task for task in observation.tasks if task.name == name), None)


def observed_pool(observations: Sequence[Observation]) -> TracePool:
    """Speeds of the machines over time, each relative to the best that any of them had; steady if none was probed."""
    seen = _observed(observations)
    speeds_by_interval = [dict(zip(each.machines.name, each.machines.speed, strict=True)) for each in seen]
    machines = dict.fromkeys(name for each in speeds_by_interval for name, speed in each.items() if speed is not None)
    if not machines:
        return STEADY
    rows = []
    for machine in machines:
        speeds = [each.get(machine) for each in speeds_by_interval]
        known = [speed for speed in speeds if speed is not None]
        # Before and after its life a machine is taken to be as it was on the mean.
        filled = [speed if speed is not None else sum(known) / len(known) for speed in speeds]
        rates, every_s = _even(seen, [speed * each.seconds for speed, each in zip(filled, seen, strict=True)])
        rows.append(rates)
    values = np.array(rows) / np.max(rows)
    return TracePool(np.maximum(values, 0.01), np.ones_like(values), np.ones_like(values), every_s, "observed")


@dataclass(frozen=True, slots=True)
class Gap:
    """How far a simulation is from the live run that it replays."""

    throughput: float
    """Relative difference of the rows that were processed, over all fragments."""

    backlog: float
    """Mean difference of the rows that wait, over their mean (or over what comes in an interval, if that is more)."""

    @property
    def spark_gap(self) -> float:
        """The larger of the two."""
        return max(self.throughput, self.backlog)


def gap(observations: Sequence[Observation], streams: Sequence[tuple[Signature, Signature]] = ()) -> Gap:
    """Simulate the fragments of a live run as they were, and compare.

    A fragment is one task on a processor of its own: its rows wait before it, and a row costs what it did while the
    fragment was at its limit, batches' fixed costs included. ``streams`` are pairs of source and target
    task: a fragment whose tasks read another's gets its rows from there, the others from outside.
    """
    seen = _observed(observations)
    fragments = _fragments(seen)
    feeds = _feeds(fragments, streams)
    rates: dict[str, ArrivalRate] = {}
    costs = {}
    taken: dict[str, Floats] = {}
    behind: dict[str, Floats] = {}
    reached: dict[str, float] = {}
    for name, rows in fragments.items():
        rows_in = np.array([0.0 if row is None else row.rows_in for row in rows])
        waiting = np.array([0.0 if row is None else row.rows_behind or 0 for row in rows])
        came = np.maximum(rows_in + np.diff(waiting, prepend=0.0), 0.0)
        even, every_s = _even(seen, came.tolist())
        taken[name], behind[name], reached[name] = rows_in, waiting, float(came.sum())
        costs[name] = _busy_cost_s(seen, rows)
        if not feeds[name]:
            rates[name] = Recorded(tuple(even.tolist()), every_s)
    total = {name: float(rows.sum()) for name, rows in taken.items()}
    flow = _flow(fragments, feeds, costs, total, reached)
    cloud = Cloud("observed", (VmClass("fragment", 1, 1.0, 1e9, Decimal(1)),), latency_s=0.0)
    setting = Setting(flow, cloud, rates, len(even), every_s)
    simulator = Simulator(setting)
    Deployed(Deployment(tuple(Machine("fragment", {name: 1}) for name in fragments))).begin(simulator)
    simulator.advance(setting.intervals)
    order = [simulator.shape.place(name) for name in fragments]
    done = sum(float(simulator.finished[0, place]) for place in order)
    live = sum(total.values())
    edges = np.cumsum([each.seconds for each in seen])
    times = (np.arange(setting.intervals) + 1) * every_s
    off, size = 0.0, 0.0
    for name, place in zip(fragments, order, strict=True):
        simulated = np.interp(edges, times, simulator.queues[0, :, place])
        off += float(np.abs(simulated - behind[name]).mean())
        size += max(float(behind[name].mean()), total[name] / len(seen))
    return Gap(abs(done - live) / max(live, 1.0), off / max(size, 1.0))


def _fragments(seen: Sequence[Observation]) -> dict[str, list[FragmentObservation | None]]:
    names = dict.fromkeys(fragment.id for each in seen for fragment in each.fragments if fragment.rows_in > 0)
    if not names:
        raise InputError("BAD_OBSERVATIONS", "no fragment was observed to take rows; nothing can be replayed")
    return {
        f"f{place}": [next((f for f in each.fragments if f.id == name), None) for each in seen]
        for place, name in enumerate(names)
    }


def _feeds(
    fragments: Mapping[str, Sequence[FragmentObservation | None]], streams: Sequence[tuple[Signature, Signature]]
) -> dict[str, list[str]]:
    home = {task: name for name, rows in fragments.items() for row in rows if row is not None for task in row.tasks}
    feeds: dict[str, list[str]] = {name: [] for name in fragments}
    places = {name: place for place, name in enumerate(fragments)}
    for source, target in streams:
        if source in home and target in home and home[source] != home[target]:
            before, after = home[source], home[target]
            if before not in feeds[after] and places[before] < places[after]:
                feeds[after].append(before)
    return feeds


def _busy_cost_s(seen: Sequence[Observation], rows: Sequence[FragmentObservation | None]) -> float:
    """Seconds a row takes of a fragment that is at its limit.

    While more rows wait than it takes in an interval, from the interval's beginning to its end, that is how long
    intervals are over how many rows it took in them. Where that never happened, it could have taken more than it did:
    a row then took no longer than it did in the batches, or than it did while most came.
    """
    pairs = [(each.seconds, row) for each, row in zip(seen, rows, strict=True)]
    at_limit, known = [], []
    for (_, before), (seconds, row) in pairwise(pairs):
        if row is None or not row.rows_in:
            continue
        known.append((row.batch_s / row.rows_in, seconds / row.rows_in))
        if before is not None and min(before.rows_behind or 0, row.rows_behind or 0) > row.rows_in:
            at_limit.append((seconds, row.rows_in))
    if at_limit:
        return sum(seconds for seconds, _ in at_limit) / sum(count for _, count in at_limit)
    if not known:
        only = next(row for _, row in pairs if row is not None and row.rows_in)
        return only.batch_s / only.rows_in
    return min(float(np.median([in_batches for in_batches, _ in known])), min(at_most for _, at_most in known))


def _flow(
    fragments: Mapping[str, object],
    feeds: Mapping[str, Sequence[str]],
    costs: Mapping[str, float],
    taken: Mapping[str, float],
    reached: Mapping[str, float],
) -> Dataflow:
    """Fragments as opaque tasks; what one sends on is what reached its readers for each row that it took."""
    tasks, streams = [], []
    for name in fragments:
        readers = [reader for reader, sources in feeds.items() if name in sources]
        sent = max((reached[reader] / max(taken[name], 1.0) for reader in readers), default=1.0)
        work = Alternate("as-it-was", "opaque", Config({"label": name}), 1.0, costs[name], sent)
        ports = Ports(
            (Port(PortName("in")),) if feeds[name] else (),
            (Port(PortName("out")),) if readers or not feeds[name] else (),
        )
        tasks.append(Task(TaskId(name), (work,), ports))
        streams += [Stream(TaskId(each), PortName("out"), TaskId(name), PortName("in")) for each in feeds[name]]
    return Dataflow(DataflowName("observed"), tuple(tasks), tuple(streams))
