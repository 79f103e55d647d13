"""What observations say of the work of tasks: costs from profiles, selectivities and shares of streams from counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from headgate.model.cluster.machine_observations import MachineObservations
from headgate.model.cluster.observation import Observation, TaskObservation, TaskProfile
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import Signature, TaskId
from headgate.model.stream import ByPredicate

__all__ = ["Measured", "measured_figures", "measured_shares", "observed_speed"]


@dataclass(frozen=True, slots=True)
class Measured:
    """Core-seconds of a row on the reference core, and rows out per row in; none where it was not measured."""

    cost_s: float | None = None
    selectivity: float | None = None


def _cost_s(profile: TaskProfile, speed: float) -> float:
    """For how long a row holds a core of power 1: work takes longer on a slow core, waiting does not.

    >>> round(_cost_s(TaskProfile(10, 0.002, 0.022, 0.0, 0, None), speed=0.5), 4)
    0.021
    """
    waits_s = max(profile.sojourn_s_per_row - profile.cpu_s_per_row, 0.0)
    return profile.cpu_s_per_row * speed + waits_s


def observed_speed(observations: Iterable[Observation]) -> float:
    """The mean power of a core over all intervals in which machines were probed; 1 if none ever was."""
    rows = chain.from_iterable(each.machines for each in observations)
    return MachineObservations.of(list(rows)).mean_speed() or 1.0


def measured_figures(
    observations: Sequence[Observation], tasks: Mapping[TaskId, Signature], speed: float = 1.0
) -> dict[tuple[str, str], Measured]:
    """What was measured of each alternate that ran, by task and alternate; costs on cores of power ``speed``."""
    named = {signature: name for name, signature in tasks.items()}
    by_name = {str(name): name for name in tasks}
    rows_in: dict[tuple[str, str], int] = {}
    rows_out: dict[tuple[str, str], int] = {}
    profiles: dict[tuple[str, str], TaskProfile] = {}
    for each in observations:
        for seen in each.tasks:
            name = named.get(seen.task) or by_name.get(seen.name)
            if name is None:
                continue
            key = name, seen.alternate
            rows_in[key] = rows_in.get(key, 0) + seen.rows_in
            rows_out[key] = rows_out.get(key, 0) + seen.rows_out
            if seen.profile is not None and seen.profile.rows > 0:
                profiles[key] = seen.profile  # the latest knows all measurements before it
    return {
        key: Measured(
            _cost_s(profiles[key], speed) if key in profiles else None,
            rows_out[key] / count if count else None,
        )
        for key, count in rows_in.items()
    }


def measured_shares(
    observations: Sequence[Observation], dataflow: Dataflow, tasks: Mapping[TaskId, Signature]
) -> dict[tuple[str, str], float]:
    """Share of the rows that pass a stream's predicate, where it is the only one of a task whose share is not known."""
    graph = Graph(dataflow)
    arrived, left = _totals(observations)
    shares = {}
    for target, feeds in graph.feeds.items():
        filtered = [stream for stream in feeds if isinstance(stream.routing, ByPredicate)]
        if len(filtered) != 1 or any(stream.feedback for stream in feeds):
            continue
        (stream,) = filtered
        came = arrived.get(tasks[target])
        sent = left.get(tasks[stream.source], 0)
        if came is not None and sent:
            others = sum(left.get(tasks[each.source], 0) for each in feeds if each is not stream)
            shares[str(stream.source), str(target)] = min(max(came - others, 0) / sent, 1.0)
    return shares


def _totals(observations: Iterable[Observation]) -> tuple[dict[Signature, int], dict[Signature, int]]:
    """Rows into and out of each task, sinks included."""
    arrived: dict[Signature, int] = {}
    left: dict[Signature, int] = {}
    for each in observations:
        tasks: Iterable[TaskObservation] = each.tasks
        for task in tasks:
            arrived[task.task] = arrived.get(task.task, 0) + task.rows_in
            left[task.task] = left.get(task.task, 0) + task.rows_out
        for sink in each.sinks:
            arrived[sink.task] = arrived.get(sink.task, 0) + sink.rows
    return arrived, left
