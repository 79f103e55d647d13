"""Rows per stream of a dataflow, from the rows into and out of its tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headgate.model.dataflow import Dataflow
from headgate.model.stream import ByPredicate

__all__ = ["Edge", "between", "stream_rows"]

Edge = tuple[str, str]
"""The tasks at the ends of a stream."""


def stream_rows(dataflow: Dataflow, rows_in: Mapping[str, int], rows_out: Mapping[str, int]) -> dict[Edge, float]:
    """The rows of each stream, by the tasks at its ends.

    A stream without a predicate carries all that its source puts out. One with a predicate carries what its target got
    beyond that; several such streams into one task share it evenly, since their rows were not counted apart.
    """
    rows_of: dict[Edge, float] = {}
    for task in dataflow.tasks:
        into = [stream for stream in dataflow.streams if stream.target == task.id]
        whole = [stream for stream in into if not isinstance(stream.routing, ByPredicate)]
        some = [stream for stream in into if isinstance(stream.routing, ByPredicate)]
        for stream in whole:
            edge = (str(stream.source), str(task.id))
            rows_of[edge] = rows_of.get(edge, 0.0) + rows_out.get(str(stream.source), 0)
        left = rows_in.get(str(task.id), 0) - sum(rows_out.get(str(stream.source), 0) for stream in whole)
        for stream in some:
            edge = (str(stream.source), str(task.id))
            rows_of[edge] = rows_of.get(edge, 0.0) + max(left, 0) / len(some)
    return rows_of


def between(rows: Mapping[Edge, float], operators: Collection[str]) -> dict[Edge, float]:
    """The rows from operator to operator, through the tasks between them; ``""`` stands for outside.

    A task between sends on what it gets in the proportions in which it has sent rows altogether.

    >>> between({("in", "keep"): 10, ("keep", "match"): 4, ("match", "score"): 4}, ["match", "score"])
    {('match', 'score'): 4.0, ('', 'match'): 4.0}
    """
    left = {edge: float(count) for edge, count in rows.items()}
    sources = {source for source, _ in rows} - {target for _, target in rows}
    for task in dict.fromkeys(name for edge in rows for name in edge):
        if task in operators or task in sources:
            continue
        into = {source: count for (source, target), count in left.items() if target == task and source != task}
        out = {target: count for (source, target), count in left.items() if source == task and target != task}
        left = {edge: count for edge, count in left.items() if task not in edge}
        entered = sum(into.values())
        for source, came in into.items():
            for target, went in out.items():
                through = went * came / entered if entered else 0.0
                left[source, target] = left.get((source, target), 0.0) + through
    rows_of: dict[Edge, float] = {}
    for (source, target), count in left.items():
        if target in operators:
            edge = (source if source in operators else "", target)
            rows_of[edge] = rows_of.get(edge, 0.0) + count
    return rows_of
