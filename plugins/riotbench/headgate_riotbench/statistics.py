"""Keyed task types that estimate: RIoTBench's statistics."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, PositiveInt

from headgate.model.task_type import ColumnName
from headgate.model.work import Index
from headgate.tasks.keyed_base import KeyedColumn, Row, Step, Stepped, as_json, keyed

__all__ = ["TYPES", "BlockAverage", "DistinctSketch", "SecondMoment", "SlidingRegression"]


class BlockAverage(KeyedColumn):
    """Average each block of so many values of a key, and pass on the row that completes it."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor", "field"], "column": "value", "size": 10}

    column: ColumnName = Field(description="The column to average.")
    size: PositiveInt = Field(10, le=100_000, description="How many values make a block.")
    every: bool = Field(
        False, description="Whether all rows pass, with the mean of the last whole block, null until there is one."
    )
    into: ColumnName = Field("average", description="The name of the new column.")

    @property
    def sparse(self) -> bool:
        return not self.every

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


def block_average(options: BlockAverage, index: Index) -> Step:
    """The step of a block_average task; it remembers the sum and the count of the block, and the mean of the last.

    >>> step = block_average(BlockAverage(key=("k",), column="v", size=2), ["v"].index)
    >>> state, nothing = step(None, [1.0])
    >>> state, mean = step(state, [4.0])
    >>> nothing, mean
    (None, 2.5)
    """
    column, size, every = index(options.column), options.size, options.every

    def step(state: Any, row: Row) -> Stepped:
        value = row[column]
        total, count, last = state or (0.0, 0, None)
        if value is None:
            return state, last if every else None
        total, count = total + float(value), count + 1
        if count < size:
            return (total, count, last), last if every else None
        mean = total / size
        return (0.0, 0, mean), mean

    return step


class DistinctSketch(KeyedColumn):
    """Estimate the number of distinct values of each key so far, by a HyperLogLog sketch of fixed size.

    The standard error is 1.04 over the square root of the number of registers, 2 to the power of ``bits``. (RIoTBench
    has the older LogLog, which reads the same registers with a larger error.)
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["field"], "column": "sensor"}

    column: ColumnName = Field(description="The column whose values are counted.")
    bits: int = Field(10, ge=4, le=16, description="There are 2 to the power of this many registers, a byte each.")
    into: ColumnName = Field("distinct", description="The name of the new column.")

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


def distinct_sketch(options: DistinctSketch, index: Index) -> Step:
    """The step of a distinct_sketch task.

    E = alpha_m m^2 / sum_j 2^-M_j, with m registers M_j; where E is at most 5/2 m and V registers are empty, the linear
    count m ln(m / V) is better. The sum and V are kept beside the registers, so that a row costs the same whatever m
    is. (Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog", 2007, figure 3. Hashes have 64 bits, so its correction for
    hashes that run out is not needed.)

    >>> step, state = distinct_sketch(DistinctSketch(key=("k",), column="v"), ["v"].index), None
    >>> for n in range(5_000):
    ...     state, estimate = step(state, [n])
    >>> abs(estimate / 5_000 - 1) < 0.1
    True
    """
    column, bits = index(options.column), options.bits
    m = 1 << bits
    alpha = {16: 0.673, 32: 0.697, 64: 0.709}.get(m, 0.7213 / (1 + 1.079 / m))

    def step(state: Any, row: Row) -> Stepped:
        registers, total, empty = state or (bytearray(m), float(m), m)
        value = row[column]
        if value is not None:
            hashed = int.from_bytes(hashlib.blake2b(str(value).encode(), digest_size=8).digest(), "big")
            at, rest = hashed >> (64 - bits), hashed & ((1 << (64 - bits)) - 1)
            rank = 64 - bits - rest.bit_length() + 1
            before = registers[at]
            if rank > before:
                registers[at] = rank
                total += 2.0**-rank - 2.0**-before
                empty -= before == 0
        estimate = alpha * m * m / total
        if estimate <= 2.5 * m and empty:
            estimate = m * math.log(m / empty)
        return (registers, total, empty), estimate

    return step


class SecondMoment(KeyedColumn):
    """Estimate the second moment of each key's values: the sum over distinct values of their count squared.

    By the sampling of Alon, Matias and Szegedy: some places of the stream are drawn, all equally likely, and from each
    on the value there is counted, c; n (2 c - 1) over the places, on average, is the estimate.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor", "field"], "column": "value"}

    column: ColumnName = Field(description="The column whose values are counted.")
    places: PositiveInt = Field(10, le=10_000, description="How many places of the stream are tracked at most.")
    seed: int = Field(0, ge=0, lt=2**63, description="Another seed draws other places.")
    into: ColumnName = Field("moment", description="The name of the new column.")

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


def second_moment(options: SecondMoment, index: Index) -> Step:
    """The step of a second_moment task; the places are a reservoir sample (Alon, Matias, Szegedy 1996, section 2.2).

    >>> step, state = second_moment(SecondMoment(key=("k",), column="v"), ["v"].index), None
    >>> for letter in "abbccc":
    ...     state, estimate = step(state, [letter])
    >>> estimate  # 1 + 4 + 9: there are places enough to track all
    14.0
    """
    column, most, seed = index(options.column), options.places, options.seed

    def step(state: Any, row: Row) -> Stepped:
        n, tracked = state or (0, ())
        value = row[column]
        if value is None:
            return state, None
        n += 1
        tracked = [(item, count + (item == value)) for item, count in tracked]
        if len(tracked) < most:
            tracked.append((value, 1))
        else:
            # A place is drawn with probability most / n, and then stands for one of those before.
            drawn = _mixed(seed, n) % n
            if drawn < most:
                tracked[drawn] = (value, 1)
        return (n, tuple(tracked)), n * sum(2 * count - 1 for _, count in tracked) / len(tracked)

    return step


def _mixed(seed: int, number: int) -> int:
    """A random number that a seed and a count always give again (splitmix64)."""
    mask = (1 << 64) - 1
    z = (seed + number * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


class SlidingRegression(KeyedColumn):
    """Fit a line to the last values of each key, and predict the next ones.

    Rows pass from the moment on when there are enough values to fit.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor", "field"], "column": "smoothed"}

    column: ColumnName = Field(description="The column of values.")
    train: int = Field(10, ge=2, le=100_000, description="How many values to fit.")
    ahead: PositiveInt = Field(10, le=10_000, description="How many values to predict.")
    into: ColumnName = Field("predictions", description="The name of the new column, an array.")

    @property
    def sparse(self) -> bool:
        return True

    def added(self) -> Mapping[str, str]:
        return {self.into: "array<double>"}


def sliding_regression(options: SlidingRegression, index: Index) -> Step:
    """The step of a sliding_regression task: least squares over the places 0, 1, ..., in closed form.

    >>> step, state = sliding_regression(SlidingRegression(key=("k",), column="v", train=3, ahead=2), ["v"].index), None
    >>> for value in (1.0, 2.0, 3.0):
    ...     state, predicted = step(state, [value])
    >>> predicted
    '[4.0,5.0]'
    """
    column, train, ahead = index(options.column), options.train, options.ahead
    mean_x = (train - 1) / 2
    spread = sum((x - mean_x) ** 2 for x in range(train))

    def step(state: Any, row: Row) -> Stepped:
        value = row[column]
        if value is None:
            return state, None
        last = (*(state or ()), float(value))[-train:]
        if len(last) < train:
            return last, None
        mean = sum(last) / train
        slope = sum((x - mean_x) * y for x, y in enumerate(last)) / spread
        return last, as_json([mean + slope * (x - mean_x) for x in range(train, train + ahead)])

    return step


TYPES = (
    keyed("block_average", BlockAverage, block_average, "headgate-riotbench"),
    keyed("distinct_sketch", DistinctSketch, distinct_sketch, "headgate-riotbench"),
    keyed("second_moment", SecondMoment, second_moment, "headgate-riotbench"),
    keyed("sliding_regression", SlidingRegression, sliding_regression, "headgate-riotbench"),
)
