"""Counts, sums and averages, with the types of Spark SQL: integers as bigint, decimals with ten digits more."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Any

from headgate.errors import InputError
from headgate.tasks.chains.aggregates.base import Columns
from headgate.tasks.chains.columns import as_array, summed, valid_of, values_of
from headgate.tasks.chains.grouping import Groups
from headgate.tasks.heavy import np, pa

__all__ = ["Average", "Counted", "Sum", "number_type", "sum_type"]

_EXACT = decimal.Context(prec=80, rounding=decimal.ROUND_HALF_UP)
_SAFE = 2.0**62


def number_type(kind: Any, function: str) -> Any:
    """The type in which numbers are added: texts and nulls as doubles, as Spark SQL casts them."""
    types = pa.types
    if types.is_integer(kind) or types.is_decimal(kind) or types.is_floating(kind):
        return kind
    if types.is_null(kind) or types.is_string(kind) or types.is_large_string(kind):
        return pa.float64()
    raise InputError("TASK_REFUSED", f"'{function}' of {kind} is not computed; cast it to a number")


def sum_type(kind: Any) -> Any:
    """The type of a sum."""
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(38, kind.precision + 10), kind.scale)
    return pa.int64() if pa.types.is_integer(kind) else pa.float64()


@dataclass(frozen=True)
class Counted:
    """``count``: of rows, or of values."""

    @property
    def state(self) -> tuple[Any, ...]:
        return (pa.int64(),)

    @property
    def result(self) -> Any:
        return pa.int64()

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        del sequence
        valid = valid_of(columns[0]) if columns else None
        return (pa.array(groups.lengths if valid is None else summed(valid.astype(np.int64), groups)),)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        return (pa.array(summed(values_of(columns[0], np.int64), groups)),)

    def finish(self, columns: Columns) -> Any:
        return columns[0].fill_null(0)


@dataclass(frozen=True)
class Sum:
    """``sum``; null where there are only nulls. What does not fit into the type raises, as in Spark SQL."""

    kind: Any

    @property
    def state(self) -> tuple[Any, ...]:
        return (self.result,)

    @property
    def result(self) -> Any:
        return sum_type(self.kind)

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        del sequence
        return self.merge((columns[0].cast(self.kind),), groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        (column,) = columns
        valid = valid_of(column)
        known = None if valid is None else np.logical_or.reduceat(valid, groups.starts)
        if pa.types.is_decimal(self.kind):
            return (_decimal_sums(column, groups, self.result),)
        if pa.types.is_integer(self.kind):
            return (as_array(_whole_sums(values_of(column, np.int64), groups), known, pa.int64()),)
        return (as_array(summed(values_of(column, np.float64), groups), known, pa.float64()),)

    def finish(self, columns: Columns) -> Any:
        return columns[0]


def _whole_sums(values: Any, groups: Groups) -> Any:
    if len(values) and len(values) * float(np.abs(values.astype(np.float64)).max()) >= _SAFE:
        rough = summed(values.astype(np.float64), groups)
        for group in np.flatnonzero(np.abs(rough) >= _SAFE):
            start = groups.starts[group]
            if not -(1 << 63) <= sum(values[start : start + groups.lengths[group]].tolist()) < 1 << 63:
                raise OverflowError("a sum of bigint does not fit into bigint; cast its values to decimal")
    return summed(values, groups)


def _decimal_sums(column: Any, groups: Groups, kind: Any) -> Any:
    # At most 38 digits and 2^31 of them: an estimate by doubles is enough to see what Arrow would wrap round.
    rough = np.abs(summed(np.abs(values_of(column, np.float64)), groups))
    if len(rough) and rough.max() >= 10.0 ** (38 - kind.scale):
        raise OverflowError(f"a sum of decimals does not fit into {kind}; cast its values to double")
    table = pa.table({"group": groups.ids, "value": column.cast(pa.decimal128(38, kind.scale))})
    sums = table.group_by("group", use_threads=False).aggregate([("value", "sum")]).sort_by("group")
    return sums["value_sum"].combine_chunks().cast(kind)


@dataclass(frozen=True)
class Average:
    """``avg``: a double; of decimals one with four digits more, rounded half up."""

    kind: Any

    @property
    def _sum(self) -> Any:
        return sum_type(self.kind) if pa.types.is_decimal(self.kind) else pa.float64()

    @property
    def state(self) -> tuple[Any, ...]:
        return (self._sum, pa.int64())

    @property
    def result(self) -> Any:
        if pa.types.is_decimal(self.kind):
            return pa.decimal128(min(38, self.kind.precision + 4), min(38, self.kind.scale + 4))
        return pa.float64()

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        adding = self.kind if pa.types.is_decimal(self.kind) else pa.float64()
        values = columns[0].cast(adding, safe=False)
        return (*Sum(adding).begin((values,), sequence, groups), *Counted().begin((values,), sequence, groups))

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        return (*Sum(self._sum_kind).merge(columns[:1], groups), *Counted().merge(columns[1:], groups))

    @property
    def _sum_kind(self) -> Any:
        return self.kind if pa.types.is_decimal(self.kind) else pa.float64()

    def finish(self, columns: Columns) -> Any:
        counts = values_of(columns[1], np.int64)
        if not pa.types.is_decimal(self.kind):
            sums = values_of(columns[0], np.float64)
            return as_array(sums / np.maximum(counts, 1), counts > 0, pa.float64())
        unit = decimal.Decimal(1).scaleb(-self.result.scale)
        means = [
            None if not count else _EXACT.quantize(_EXACT.divide(total, decimal.Decimal(int(count))), unit)
            for total, count in zip(columns[0].to_pylist(), counts, strict=True)
        ]
        return pa.array(means, self.result)
