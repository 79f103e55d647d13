"""Several observations as one, of all of their time together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from headgate.model.cluster.observation import (
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
    TaskObservation,
)
from headgate.model.names import Signature

__all__ = ["merged_observation"]

T = TypeVar("T")


def merged_observation(observations: Sequence[Observation]) -> Observation:
    """One observation of what some that follow each other have measured.

    Rows, epochs and seconds are added up; what is a state, such as waiting rows and machines, is that of the last. What
    one of them does not know is not known.

    >>> source = SourceObservation(Signature("s"), "a.s", ("a",), 10, 30.0, 20.0)
    >>> both = merged_observation([Observation(5.0, 5.0, sources=(source,)), Observation(10.0, 5.0, sources=(source,))])
    >>> both.seconds, both.sources[0].rows_arrived, both.sources[0].rows_waiting
    (10.0, 60.0, 20.0)
    """
    last = observations[-1]
    return replace(
        last,
        seconds=sum(each.seconds for each in observations),
        tasks=tuple(_task(every) for every in _by(last.tasks, observations, lambda seen: seen.tasks, _task_key)),
        sinks=tuple(_sink(every) for every in _by(last.sinks, observations, lambda seen: seen.sinks, _sink_key)),
        sources=tuple(
            _source(every) for every in _by(last.sources, observations, lambda seen: seen.sources, _source_key)
        ),
        fragments=tuple(
            _fragment(every) for every in _by(last.fragments, observations, lambda seen: seen.fragments, _fragment_key)
        ),
    )


def _task_key(task: TaskObservation) -> Signature:
    return task.task


def _sink_key(sink: SinkObservation) -> Signature:
    return sink.task


def _source_key(source: SourceObservation) -> Signature:
    return source.task


def _fragment_key(fragment: FragmentObservation) -> str:
    return fragment.id


def _by(
    last: Iterable[T],
    observations: Sequence[Observation],
    of: Callable[[Observation], Iterable[T]],
    key: Callable[[T], str],
) -> Iterable[list[T]]:
    """What was seen of each that the last observation has, oldest first."""
    seen: dict[str, list[T]] = {key(each): [] for each in last}
    for observation in observations:
        for each in of(observation):
            if key(each) in seen:
                seen[key(each)].append(each)
    return seen.values()


def _task(every: Sequence[TaskObservation]) -> TaskObservation:
    return replace(
        every[-1],
        rows_in=sum(each.rows_in for each in every),
        rows_out=sum(each.rows_out for each in every),
        errors=sum(each.errors for each in every),
    )


def _sink(every: Sequence[SinkObservation]) -> SinkObservation:
    known = [(each.rows, each.sojourn) for each in every if each.sojourn is not None and each.rows]
    rows = sum(count for count, _ in known)
    sojourn = None
    if rows:
        means = (
            sum(count * getattr(each, name) for count, each in known) / rows
            for name in ("mean_s", "p50_s", "p95_s", "p99_s")
        )
        sojourn = Sojourn(*means)
    return replace(every[-1], rows=sum(each.rows for each in every), sojourn=sojourn)


def _source(every: Sequence[SourceObservation]) -> SourceObservation:
    arrived = _total(each.rows_arrived for each in every)
    return replace(every[-1], rows_taken=sum(each.rows_taken for each in every), rows_arrived=arrived)


def _fragment(every: Sequence[FragmentObservation]) -> FragmentObservation:
    sums = {
        name: sum(getattr(each, name) for each in every)
        for name in ("batches", "rows_in", "batch_s", "planning_s", "scheduling_s", "execution_s", "commit_s")
    }
    arrived = _total(each.rows_arrived for each in every)
    return replace(every[-1], **sums, rows_arrived=arrived, work_s=_work(every))


def _work(every: Sequence[FragmentObservation]) -> float | None:
    """Work of all rows, where that of some is known."""
    known = [each for each in every if each.work_s is not None and each.batches]
    batches = sum(each.batches for each in known)
    if not batches:
        return None
    return sum(each.work_s or 0.0 for each in known) * sum(each.batches for each in every) / batches


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if any(value is None for value in known) else sum(value for value in known if value is not None)
