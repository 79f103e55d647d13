"""Relative throughput as it was measured: the rows at the sinks over those that could have been there.

What could have been there follows from what had arrived, whatever waits included, and from the selectivities as they
were measured. The equations are those of :mod:`headgate.capacity.serve`: a task that has so much work as it has done
rows leaves the rest waiting, and what it leaves is missing behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.model.cluster.observation import FragmentObservation, Observation
from headgate.model.graph import topological_order
from headgate.model.names import Signature

__all__ = ["Throughput", "throughput"]


@dataclass(frozen=True, slots=True)
class Throughput:
    """How much of its input a dataflow has dealt with."""

    omega: float | None
    """Relative throughput (DYN, Eq. 7), the mean over its sinks; none if ``unknown``."""

    kept_up: float | None
    """Rows that its fragments took over rows that came before them."""

    unknown: str = ""
    kept_up_unknown: str = ""


@dataclass(slots=True)
class _Balance:
    """The rows of a task or sink."""

    name: str = ""
    done: float = 0.0
    out: float = 0.0
    """Rows that it put out."""

    waiting: float = 0.0
    """Rows that waited for it in the end."""

    inputs: tuple[Signature, ...] = ()
    routed: bool = False
    is_source: bool = False
    came: float | None = None
    """Rows that came to it, where it has a fragment of its own."""

    unknown: str = ""
    """Why it is not known what waits for it."""


def throughput(seen: Observation) -> dict[str, Throughput]:
    """Relative throughput by dataflow; of one without sinks it is not known."""
    balances = _balances(seen)
    order = topological_order({task: [one for one in b.inputs if one in balances] for task, b in balances.items()})
    place = {task: number for number, task in enumerate(order)}
    reasons = _reasons([balances[task] for task in order], place)
    sinks = {
        flow.name: [place[sink.task] for sink in seen.sinks if flow.name in sink.dataflows] for flow in seen.dataflows
    }
    measured = [name for name, outputs in sinks.items() if outputs]
    omegas = dict(zip(measured, _omegas([balances[task] for task in order], place, sinks, measured), strict=True))
    kept = {flow.name: _kept_up(seen, flow.name) for flow in seen.dataflows}
    every = {}
    for name, outputs in sinks.items():
        why = next((reasons[output] for output in outputs if reasons[output]), "")
        why = why or ("" if outputs else "throughput: it has no sink that runs")
        every[name] = Throughput(None if why else omegas[name], *kept[name][:1], why, kept[name][1])
    return every


def _balances(seen: Observation) -> dict[Signature, _Balance]:
    """What went into each task, out of it, and what waits for it."""
    balances = {
        task.task: _Balance(task.name, task.rows_in, task.rows_out, task.rows_waiting or 0.0, task.inputs, task.routed)
        for task in seen.tasks
    }
    balances |= {
        sink.task: _Balance(sink.name, sink.rows, sink.rows, 0.0, sink.inputs, sink.routed) for sink in seen.sinks
    }
    for source in seen.sources:
        balance = balances.setdefault(source.task, _Balance(source.name))
        balance.is_source, balance.done = True, float(source.rows_taken)
        balance.waiting = source.rows_waiting or 0.0
        if source.rows_waiting is None:
            reason = source.unknown or "it is not known how many rows wait"
            balance.unknown = f"throughput: source '{source.name}': {reason}"
    for fragment in seen.fragments:
        if fragment.kind != "source":
            _add_waiting(balances, fragment)
    return balances


def _add_waiting(balances: Mapping[Signature, _Balance], fragment: FragmentObservation) -> None:
    """Rows before a fragment wait for the tasks at its root, in the proportions in which they took rows."""
    inside = set(fragment.tasks)
    mine = [task for task in fragment.tasks if task in balances]
    roots = mine[:1] if fragment.kind in ("feedback", "proxy") else []
    for task in roots or [task for task in mine if inside.isdisjoint(balances[task].inputs)]:
        balance = balances[task]
        if fragment.rows_behind is None:
            balance.unknown = f"throughput: it is not known what waits before task '{balance.name}'"
            continue
        part = balance.done / fragment.rows_in if fragment.rows_in else 1.0
        balance.waiting += fragment.rows_behind * part
        if fragment.rows_arrived is not None and fragment.kind in ("keyed", "chained"):
            balance.came = fragment.rows_arrived * part


def _reasons(ordered: Sequence[_Balance], place: Mapping[Signature, int]) -> list[str]:
    """Why it is not known what each task could have had: what waits for it or for one before it is not known."""
    reasons: list[str] = []
    for balance in ordered:
        before = (reasons[place[task]] for task in balance.inputs if task in place)
        reasons.append(balance.unknown or next((reason for reason in before if reason), ""))
    return reasons


def _omegas(
    ordered: Sequence[_Balance],
    place: Mapping[Signature, int],
    sinks: Mapping[str, Sequence[int]],
    measured: Sequence[str],
) -> list[float]:
    """Relative throughput of dataflows that have sinks."""
    from headgate.capacity.serve import NO_NETWORK, serve_once  # it takes long: with its compiler

    count = len(ordered)
    streams, arrived, queue = defaultdict[int, list[tuple[int, float]]](list), np.zeros(count), np.zeros(count)
    for target, balance in enumerate(ordered):
        feeds = [place[task] for task in balance.inputs if task in place]
        # What a task puts out in an interval without input, as a window may, came to its readers from before.
        sent = sum(ordered[source].out for source in feeds if ordered[source].done)
        share = _share(balance, sent)
        for source in feeds:
            streams[source].append((target, share))
        total = balance.done + balance.waiting
        if balance.is_source:
            arrived[target] = total
        else:
            queue[target] = max(total - share * sent, 0.0)  # waited before, or came back through a loop
    flat = [stream for source in range(count) for stream in streams[source]]
    first = np.cumsum([0, *(len(streams[source]) for source in range(count))], dtype=np.int64)
    done = np.array([balance.done for balance in ordered])
    out = np.array([balance.out / balance.done if balance.done else 1.0 for balance in ordered])
    flow = (
        *(np.ones(count), out),
        *(first, np.array([target for target, _ in flat], dtype=np.int64), np.array([share for _, share in flat])),
        *(np.zeros(len(flat), dtype=np.bool_), np.arange(count + 1, dtype=np.int64)),
        np.cumsum([0, *(len(sinks[name]) for name in measured)], dtype=np.int64),
        np.array([sink for name in measured for sink in sinks[name]], dtype=np.int64),
    )
    omegas, rest = np.zeros(len(measured)), np.zeros(count)
    results = (arrived.copy(), np.zeros(count), np.zeros(count), np.zeros(len(flat)), omegas, rest, rest)
    load = (arrived, queue, np.zeros(len(flat)), np.zeros(count), done, True)
    if measured:
        serve_once(flow, load, np.ones(count), NO_NETWORK, results)
    return [float(omega) for omega in omegas]


def _share(balance: _Balance, sent: float) -> float:
    """Which share of the rows that its inputs put out goes to a task, where a predicate or a port decides it."""
    if not balance.routed or not sent:
        return 1.0
    return min((balance.done if balance.came is None else balance.came) / sent, 1.0)


def _kept_up(seen: Observation, dataflow: str) -> tuple[float | None, str]:
    mine = {task.task: task.name for task in seen.tasks_and_sinks if dataflow in task.dataflows}
    taken = came = 0.0
    for fragment in seen.fragments:
        names = [mine[task] for task in fragment.tasks if task in mine]
        if not names:
            continue
        if fragment.rows_arrived is None:
            return None, f"kept up: it is not known how many rows came before task '{names[0]}'"
        taken, came = taken + fragment.rows_in, came + fragment.rows_arrived
    return (taken / came, "") if came else (None, "kept up: no row came")
