"""Several aggregates of the same groups in one pass, and the columns of state that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from headgate.model.chain_work import HASH, UNTIL
from headgate.tasks.chains.aggregate_text import AggregateCall, result_name
from headgate.tasks.chains.aggregates.base import Aggregate
from headgate.tasks.chains.aggregates.catalogue import aggregate_of
from headgate.tasks.chains.columns import one_chunk
from headgate.tasks.chains.grouping import Groups
from headgate.tasks.heavy import np, pa

__all__ = ["Aggregation", "argument_name", "numbered", "state_schema"]


def argument_name(place: int) -> str:
    """The column of an argument, in the rows that a kernel is given."""
    return f"__arg_{place}"


def numbered(epoch: int, rows: int) -> Any:
    """Numbers for an epoch's rows that rise in order of arrival, also from epoch to epoch."""
    return (np.int64(epoch) << np.int64(32)) + np.arange(rows)


def state_schema(*columns: tuple[str, Any]) -> Any:
    """The schema of a table of state."""
    return pa.schema([(HASH, pa.uint64()), (UNTIL, pa.int64()), *columns])


@dataclass(frozen=True)
class Aggregation:
    """The aggregates of a task, for the types of its rows."""

    calls: tuple[AggregateCall, ...]
    aggregates: tuple[Aggregate, ...]

    @classmethod
    def of(cls, calls: Sequence[AggregateCall], rows: Any) -> Aggregation:
        """The aggregates for rows of an Arrow schema."""
        made = (
            aggregate_of(call, [rows.field(argument_name(place)).type for place in call.arguments]) for call in calls
        )
        return cls(tuple(calls), tuple(made))

    @property
    def state(self) -> list[tuple[str, Any]]:
        """The columns of state, and their types."""
        return [
            (f"__state_{place}_{part}", kind)
            for place, aggregate in enumerate(self.aggregates)
            for part, kind in enumerate(aggregate.state)
        ]

    @property
    def results(self) -> list[tuple[str, Any]]:
        return [(result_name(place), aggregate.result) for place, aggregate in enumerate(self.aggregates)]

    def begin(self, rows: Any, sequence: Any, groups: Groups) -> list[Any]:
        """The columns of state of groups of rows; ``sequence`` numbers the rows in order of arrival."""
        order = pa.array(groups.order)
        used = {place for call in self.calls for place in call.arguments}
        columns = {place: one_chunk(rows[argument_name(place)]).take(order) for place in used}
        sequence = sequence[groups.order]
        return [
            part
            for call, aggregate in zip(self.calls, self.aggregates, strict=True)
            for part in aggregate.begin([columns[place] for place in call.arguments], sequence, groups)
        ]

    def merge(self, state: Any, groups: Groups) -> list[Any]:
        """The columns of state of groups of rows that have such columns."""
        order = pa.array(groups.order)
        sorted_state = [one_chunk(state[name]).take(order) for name, _ in self.state]
        return [part for aggregate, columns in self._divided(sorted_state) for part in aggregate.merge(columns, groups)]

    def finish(self, columns: Sequence[Any]) -> list[Any]:
        """The results of columns of state."""
        made = (aggregate.finish(own) for aggregate, own in self._divided(columns))
        return [result.cast(kind) for result, (_, kind) in zip(made, self.results, strict=True)]

    def _divided(self, columns: Sequence[Any]) -> list[tuple[Aggregate, Sequence[Any]]]:
        ends = list(accumulate(len(aggregate.state) for aggregate in self.aggregates))
        return [
            (aggregate, columns[end - len(aggregate.state) : end])
            for aggregate, end in zip(self.aggregates, ends, strict=True)
        ]
