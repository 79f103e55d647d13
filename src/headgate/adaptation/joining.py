"""Several intervals as one: what was measured in the last minute, from what was measured every five seconds. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from headgate.adaptation.usual_costs import usual_cost
from headgate.model.cluster.machine_observations import MachineObservations, MachineRow
from headgate.model.cluster.observation import (
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    TaskObservation,
)

__all__ = ["joined"]

_FRAGMENT_SUMS = (
    *("batches", "rows_in", "batch_s", "planning_s", "scheduling_s", "execution_s", "commit_s"),
    *("rows_arrived", "work_s"),
)
"""What adds up; what waits is what waited in the end."""


def joined(intervals: Sequence[Observation], before: Sequence[Observation] = ()) -> Observation:
    """Intervals in a row as one interval, without figures; there must be one at least.

    Counts are sums, values are means over time, and all else is as it was last. Of the sojourn, means are exact, and
    percentiles are those of the interval in which they were longest. Tasks that run no more are left out. Intervals
    ``before`` these help to say what rows and epochs usually cost.
    """
    last = intervals[-1]
    seconds = sum(each.seconds for each in intervals)
    return replace(
        last,
        seconds=seconds,
        tasks=tuple(_task(task, intervals) for task in last.tasks),
        sinks=tuple(_sink(sink, _same(intervals, "sinks", "task", sink.task)) for sink in last.sinks),
        fragments=tuple(_fragment(part, intervals, before) for part in last.fragments),
        machines=_machines(intervals),
        sources=tuple(
            _summed(source, _same(intervals, "sources", "task", source.task), ("rows_taken", "rows_arrived"))
            for source in last.sources
        ),
        dataflows=tuple(replace(flow, figures=None) for flow in last.dataflows),
        together=None,
    )


def _same(intervals: Iterable[Observation], table: str, field: str, key: Hashable) -> list[Any]:
    """One task, sink, source or fragment in all intervals that have it."""
    return [each for seen in intervals for each in getattr(seen, table) if getattr(each, field) == key]


def _fragment(
    last: FragmentObservation, intervals: Sequence[Observation], before: Sequence[Observation]
) -> FragmentObservation:
    """Sums; the parts of the latest epoch of all of them; and what rows and epochs usually cost."""
    every = _same(intervals, "fragments", "id", last.id)
    parts = next((each.parts for each in reversed(every) if each.parts is not None), None)
    summed: FragmentObservation = _summed(last, every, _FRAGMENT_SUMS)
    usual = usual_cost(last.id, intervals, before)
    return replace(summed, parts=parts, row_s=usual.row_s, driver_s=usual.fixed_s)


def _summed(last: Any, every: Sequence[Any], names: Iterable[str]) -> Any:
    """The last of some values with sums of some fields; a sum with something unknown is unknown."""
    columns = {name: [getattr(each, name) for each in every] for name in names}
    return replace(last, **{name: None if None in values else sum(values) for name, values in columns.items()})


def _task(last: TaskObservation, intervals: Sequence[Observation]) -> TaskObservation:
    every = [(seen.seconds, task) for seen in intervals for task in seen.tasks if task.task == last.task]
    value = sum(seconds * task.value for seconds, task in every) / sum(seconds for seconds, _ in every)
    task: TaskObservation = _summed(last, [task for _, task in every], ("rows_in", "rows_out", "errors"))
    return replace(task, value=value)


def _sink(last: SinkObservation, every: Sequence[SinkObservation]) -> SinkObservation:
    known = [(sink.rows, sink.sojourn) for sink in every if sink.sojourn is not None and sink.rows]
    rows = sum(count for count, _ in known)
    sojourn = None
    if rows:
        longest = (max(getattr(each, name) for _, each in known) for name in ("p50_s", "p95_s", "p99_s"))
        sojourn = Sojourn(sum(count * each.mean_s for count, each in known) / rows, *longest)
    return replace(last, rows=sum(sink.rows for sink in every), sojourn=sojourn)


def _machines(intervals: Iterable[Observation]) -> MachineObservations:
    """Each machine as it was last, those that have gone meanwhile too."""
    rows: dict[str, MachineRow] = {}
    for seen in intervals:
        rows |= {machine.name: machine for machine in seen.machines}
    return MachineObservations.of(list(rows.values()))
