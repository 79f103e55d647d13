"""Aggregates that are one of their values: least and greatest, first and last, and what stands beside these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.tasks.chains.aggregates.base import Columns
from headgate.tasks.chains.columns import chosen, order_codes, valid_of, values_of
from headgate.tasks.chains.grouping import Groups
from headgate.tasks.heavy import np, pa

__all__ = ["Arrival", "Extreme", "ExtremeBy"]


def _taken(column: Any, places: Any, known: Any) -> Any:
    """The values at places, null where nothing is known."""
    return column.take(pa.array(places, mask=None if known.all() else ~known))


@dataclass(frozen=True)
class Extreme:
    """``min`` and ``max``, of any type that has an order."""

    kind: Any
    largest: bool

    @property
    def state(self) -> tuple[Any, ...]:
        return (self.kind,)

    @property
    def result(self) -> Any:
        return self.kind

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        del sequence
        return self.merge(columns, groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        column = columns[0]
        return (_taken(column, *chosen(order_codes(column), valid_of(column), groups, self.largest)),)

    def finish(self, columns: Columns) -> Any:
        return columns[0]


@dataclass(frozen=True)
class ExtremeBy:
    """``max_by`` and ``min_by``: the value of the row that another column is greatest in; of equal ones the first."""

    kind: Any
    by: Any
    largest: bool

    @property
    def state(self) -> tuple[Any, ...]:
        return (self.kind, self.by, pa.int64())

    @property
    def result(self) -> Any:
        return self.kind

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        return self.merge((*columns, pa.array(sequence)), groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        _, by, sequence = columns
        codes, valid = order_codes(by), valid_of(by)
        places, _ = chosen(codes, valid, groups, self.largest)
        best = codes == np.repeat(codes[places], groups.lengths)
        if valid is not None:
            best &= valid
        places, known = chosen(values_of(sequence, np.int64), best, groups, largest=False)
        return tuple(_taken(column, places, known) for column in columns)

    def finish(self, columns: Columns) -> Any:
        return columns[0]


@dataclass(frozen=True)
class Arrival:
    """``first`` and ``last`` in order of arrival, with or without nulls."""

    kind: Any
    latest: bool
    ignores_nulls: bool

    @property
    def state(self) -> tuple[Any, ...]:
        return (self.kind, pa.int64())

    @property
    def result(self) -> Any:
        return self.kind

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        valid = valid_of(columns[0]) if self.ignores_nulls else None
        numbers = pa.array(sequence, mask=None if valid is None else ~valid)
        return self.merge((columns[0], numbers), groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        places, known = chosen(values_of(columns[1], np.int64), valid_of(columns[1]), groups, self.latest)
        return tuple(_taken(column, places, known) for column in columns)

    def finish(self, columns: Columns) -> Any:
        return columns[0]
