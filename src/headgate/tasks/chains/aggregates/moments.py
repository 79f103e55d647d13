r"""Variances, skewness, kurtosis, covariance and correlation, from central moments that can be merged.

Of n values with mean m, M_k is the sum of (x - m)^k. For parts i with n_i, m_i, M_{k,i} and d_i = m_i - m::

    M_2 = sum_i M_{2,i} + n_i d_i^2
    M_3 = sum_i M_{3,i} + 3 d_i M_{2,i} + n_i d_i^3
    M_4 = sum_i M_{4,i} + 4 d_i M_{3,i} + 6 d_i^2 M_{2,i} + n_i d_i^4
    C   = sum_i C_i + n_i dx_i dy_i

which follows from (x - m)^k = ((x - m_i) + d_i)^k. No differences of large sums are taken, so it is as exact as
Spark's own updates (T. F. Chan, G. H. Golub, R. J. LeVeque, 1983; P. Pebay, SAND2008-6212).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.tasks.chains.aggregates.base import Columns
from headgate.tasks.chains.columns import as_array, summed, valid_of, values_of
from headgate.tasks.chains.grouping import Groups
from headgate.tasks.heavy import np, pa

__all__ = ["Comoments", "Moments"]


def _means(weights: Any, values: Any, groups: Groups) -> tuple[Any, Any]:
    """Of each group the number of values, and their mean."""
    counts = summed(weights, groups)
    return counts, summed(weights * values, groups) / np.maximum(counts, 1.0)


def _doubles(column: Any) -> Any:
    return values_of(column.cast(pa.float64(), safe=False), np.float64)


def _some(denominators: Any) -> Any:
    """Denominators, 1 in the place of 0 (the result is null there)."""
    return np.where(denominators == 0, 1.0, denominators)


@dataclass(frozen=True)
class Moments:
    """Aggregates of one column's spread."""

    function: str

    @property
    def state(self) -> tuple[Any, ...]:
        return (pa.float64(),) * 5

    @property
    def result(self) -> Any:
        return pa.float64()

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        del sequence
        values, valid = _doubles(columns[0]), valid_of(columns[0])
        weights = np.ones(len(values)) if valid is None else valid.astype(np.float64)
        zero = np.zeros(len(values))
        return self._merged(weights, values, (zero, zero, zero), groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        counts, means, *moments = (values_of(column, np.float64) for column in columns)
        return self._merged(counts, means, tuple(moments), groups)

    def _merged(self, counts: Any, means: Any, moments: tuple[Any, ...], groups: Groups) -> Columns:
        total, mean = _means(counts, means, groups)
        d = np.where(counts > 0, means - np.repeat(mean, groups.lengths), 0.0)
        second, third, fourth = moments
        return tuple(
            pa.array(column)
            for column in (
                total,
                mean,
                summed(second + counts * d**2, groups),
                summed(third + 3 * d * second + counts * d**3, groups),
                summed(fourth + 4 * d * third + 6 * d**2 * second + counts * d**4, groups),
            )
        )

    def finish(self, columns: Columns) -> Any:
        count, _, second, third, fourth = (values_of(column, np.float64) for column in columns)
        known = count > 0
        if self.function in ("var_samp", "stddev_samp"):
            result, known = second / _some(count - 1), count > 1
        elif self.function in ("var_pop", "stddev_pop"):
            result = second / _some(count)
        elif self.function == "skewness":
            result, known = np.sqrt(count) * third / _some(second) ** 1.5, known & (second != 0)
        else:
            result, known = count * fourth / _some(second) ** 2 - 3, known & (second != 0)
        if self.function.startswith("stddev"):
            result = np.sqrt(result)
        return as_array(result, known, pa.float64())


@dataclass(frozen=True)
class Comoments:
    """Aggregates of two columns: rows with a null in either do not count."""

    function: str

    @property
    def state(self) -> tuple[Any, ...]:
        return (pa.float64(),) * 6

    @property
    def result(self) -> Any:
        return pa.float64()

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        del sequence
        weights = np.ones(len(columns[0]))
        for column in columns:
            if (valid := valid_of(column)) is not None:
                weights *= valid
        x, y = (np.where(weights > 0, _doubles(column), 0.0) for column in columns)
        zero = np.zeros(len(weights))
        return self._merged((weights, x, y, zero, zero, zero), groups)

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        return self._merged(tuple(values_of(column, np.float64) for column in columns), groups)

    def _merged(self, columns: tuple[Any, ...], groups: Groups) -> Columns:
        counts, x, y, of_x, of_y, of_both = columns
        (total, mean_x), (_, mean_y) = _means(counts, x, groups), _means(counts, y, groups)
        dx, dy = (
            np.where(counts > 0, values - np.repeat(mean, groups.lengths), 0.0)
            for values, mean in ((x, mean_x), (y, mean_y))
        )
        sums = (of_x + counts * dx**2, of_y + counts * dy**2, of_both + counts * dx * dy)
        return tuple(map(pa.array, (total, mean_x, mean_y, *(summed(column, groups) for column in sums))))

    def finish(self, columns: Columns) -> Any:
        count, _, _, of_x, of_y, of_both = (values_of(column, np.float64) for column in columns)
        if self.function == "covar_pop":
            return as_array(of_both / _some(count), count > 0, pa.float64())
        if self.function == "covar_samp":
            return as_array(of_both / _some(count - 1), count > 1, pa.float64())
        spread = np.sqrt(of_x * of_y)
        return as_array(of_both / _some(spread), (count > 1) & (spread != 0), pa.float64())
