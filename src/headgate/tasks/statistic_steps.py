"""What the keyed task types that gather and estimate do to one row and to what they remember of its key."""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from headgate.tasks.statistics import (
    Accumulate,
    BlockAverage,
    Distinct,
    DistinctSketch,
    Interpolate,
    JoinFields,
    SecondMoment,
    SlidingRegression,
    TopK,
)

__all__ = ["STATISTICS", "as_json", "interpolate_many"]

Index = Callable[[str], int]
Row = Sequence[Any]
Stepped = tuple[Any, float | str | None]
Step = Callable[[Any, Row], Stepped]


def as_json(value: Any) -> str:
    """A result that is more than a number, as the host passes it on."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()


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


def interpolate(options: Interpolate, index: Index) -> Step:
    """The step of an interpolate task; it has a result only for rows in which it fills something.

    >>> step = interpolate(Interpolate(key=("k",), columns=("v",)), ["v"].index)
    >>> state, nothing = step(None, [3.0])
    >>> nothing, step(state, [None])[1]
    (None, 3.0)
    """
    places = [index(name) for name in options.columns]
    names, size = options.columns, options.size

    def step(state: Any, row: Row) -> Stepped:
        last = state or tuple(() for _ in places)
        kept, filled = [], {}
        for at, name, values in zip(places, names, last, strict=True):
            value = row[at]
            if value is None:
                kept.append(values)
                if values:
                    filled[name] = sum(values) / len(values)
            else:
                kept.append((*values, float(value))[-size:])
        result = None if not filled else filled[names[0]] if len(names) == 1 else as_json(filled)
        return tuple(kept), result

    return step


def interpolate_many(
    options: Interpolate, index: Index
) -> Callable[[Any, Sequence[pa.Array]], tuple[Any, list[float | str | None]]]:
    """The step of an interpolate task over many rows of a key: only where something is missing there is much to do.

    >>> many = interpolate_many(Interpolate(key=("k",), columns=("v",), size=2), ["v"].index)
    >>> many(((1.0, 2.0),), [pa.array([None, 4.0, None])])
    (((2.0, 4.0),), [1.5, None, 3.0])
    """
    places = [index(name) for name in options.columns]
    names, size = options.columns, options.size

    def many(state: Any, columns: Sequence[pa.Array]) -> tuple[Any, list[float | str | None]]:
        last = state or tuple(() for _ in places)
        kept = []
        filled: dict[int, dict[str, float]] = {}
        for at, name, values in zip(places, names, last, strict=True):
            column = columns[at]
            known = column
            if column.null_count:
                known = column.drop_null()
                missing = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
                numbers = [*values, *known.to_pylist()]
                for nth, row in enumerate(missing.tolist()):
                    come = len(values) + row - nth
                    window = [float(one) for one in numbers[max(come - size, 0) : come]]
                    if window:
                        filled.setdefault(row, {})[name] = sum(window) / len(window)
            newest = known.slice(max(len(known) - size, 0)).to_pylist()
            kept.append(tuple(float(one) for one in (*values, *newest)[-size:]))
        results: list[float | str | None] = [None] * len(columns[places[0]])
        for row, made in filled.items():
            results[row] = made[names[0]] if len(names) == 1 else as_json(made)
        return tuple(kept), results

    return many


def join_fields(options: JoinFields, index: Index) -> Step:
    """The step of a join_fields task; it remembers what has come of a message.

    >>> step = join_fields(JoinFields(key=("id",), columns="a double, b double"), ["field", "value"].index)
    >>> state, nothing = step(None, ["a", 1])
    >>> step(state, ["b", 2])
    (None, '{"a":1.0,"b":2.0}')
    """
    kinds = options.added()
    field, value = index(options.field), index(options.value)

    def step(state: Any, row: Row) -> Stepped:
        name = row[field]
        if name not in kinds:
            return state, None
        come = {**(state or {}), name: _as(kinds[name], row[value])}
        return (come, None) if len(come) < len(kinds) else (None, as_json(come))

    return step


def _as(kind: str, value: Any) -> Any:
    if value is None:
        return None
    return {"double": float, "bigint": int, "boolean": bool, "string": str}[kind](value)


def accumulate(options: Accumulate, index: Index) -> Step:
    """The step of an accumulate task; it remembers the rows of the batch.

    >>> step = accumulate(Accumulate(key=("k",), columns=("v",), size=2), ["v"].index)
    >>> step(step(None, [1])[0], [2])[1]
    '[1.0,2.0]'
    """
    places = [index(name) for name in options.columns]
    names, size = options.columns, options.size

    def step(state: Any, row: Row) -> Stepped:
        rows = (*(state or ()), tuple(_number(row[at]) for at in places))
        if len(rows) < size:
            return rows, None
        if len(names) == 1:
            return (), as_json([value for (value,) in rows])
        return (), as_json(dict(zip(names, zip(*rows, strict=True), strict=True)))

    return step


def _number(value: Any) -> float | None:
    if value is None:
        return None
    return value.timestamp() if isinstance(value, datetime) else float(value)


def distinct(options: Distinct, index: Index) -> Step:
    """The step of a distinct task; it remembers all values.

    >>> step = distinct(Distinct(key=("k",), column="v"), ["v"].index)
    >>> state, one = step(None, ["a"])
    >>> one, step(state, ["a"])[1], step(state, ["b"])[1]
    (1.0, 1.0, 2.0)
    """
    column = index(options.column)

    def step(state: Any, row: Row) -> Stepped:
        seen: frozenset[Any] | set[Any] = set() if state is None else state
        if row[column] is not None and row[column] not in seen:
            seen.add(row[column])  # type: ignore[union-attr]  # the host's copy: nobody else has it
        return seen, float(len(seen))

    return step


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


def top_k(options: TopK, index: Index) -> Step:
    """The step of a top_k task; it remembers the highest values, the least of them first.

    >>> step = top_k(TopK(key=("k",), column="v", size=2), ["v"].index)
    >>> state, first = step(None, [5])
    >>> state, second = step(state, [7])
    >>> first, second, step(state, [4])[1], step(state, [6])[1]
    (1.0, 1.0, None, 2.0)
    """
    column, size = index(options.column), options.size

    def step(state: Any, row: Row) -> Stepped:
        highest, value = list(state or ()), row[column]
        if value is None or (len(highest) == size and not value > highest[0]):
            return state, None
        at = bisect.bisect_left(highest, value)
        rank = len(highest) - at + 1
        highest.insert(at, value)
        return tuple(highest[-size:]), float(rank)

    return step


STATISTICS: dict[type[Any], Callable[..., Step]] = {
    BlockAverage: block_average,
    Interpolate: interpolate,
    JoinFields: join_fields,
    Accumulate: accumulate,
    Distinct: distinct,
    DistinctSketch: distinct_sketch,
    SecondMoment: second_moment,
    SlidingRegression: sliding_regression,
    TopK: top_k,
}
"""The steps of the task types in :mod:`headgate.tasks.statistics`."""
