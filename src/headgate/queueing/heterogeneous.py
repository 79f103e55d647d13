"""Processors of different speeds behind one queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import spsolve

from headgate.queueing.erlang import erlang_c

__all__ = ["MixedSpeeds", "mixed_speeds"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_STATES = 5_000


@dataclass(frozen=True, slots=True)
class MixedSpeeds:
    """An M/M/k queue whose processors differ in speed."""

    wait_probability: float
    wait_mean_s: float
    service_mean_s: float
    """Mean time in service; it lies between those of the quickest and the slowest processor."""


def mixed_speeds(speeds: Sequence[float], arrival_rate: float, service_rate: float) -> MixedSpeeds:
    r"""Mean wait and service (s) when a tuple takes the quickest processor that is free.

    While some processor is free, the state is how many of each speed are busy, :math:`(n_1, \dots, n_C)`, a Markov
    chain that is solved as it stands. When all are busy the queue is that of one server of rate :math:`M = \mu \sum_j
    \sigma_j`: with :math:`r = \lambda / M < 1` and :math:`p_F` the probability of "all busy, none waiting",

    .. math:: P(W > 0) = \frac{p_F}{1 - r}, \qquad E[Q] = \frac{P(W > 0)}{M - \lambda}

    and by Little's law E[S] is the mean number of busy processors over :math:`\lambda`. Exact for Poisson arrivals and
    exponential service; equal speeds give M/M/k. With more than 5,000 states (three speeds and more of many
    processors) all processors are taken to have the mean speed. Infinite when :math:`\lambda \ge M`.

    >>> mixed_speeds([1.0, 1.0], 3.0, 4.0).wait_mean_s  # M/M/2
    0.0409...
    >>> mixed_speeds([2.0, 0.5], 3.0, 4.0).service_mean_s < mixed_speeds([1.25, 1.25], 3.0, 4.0).service_mean_s
    True

    Reference: B. Krishnamoorthi 1963, *On Poisson Queue with Two Heterogeneous Servers*, for two processors.
    """
    return _solved(tuple(sorted(speeds, reverse=True)), arrival_rate, service_rate)


@lru_cache(maxsize=10_000)
def _solved(speeds: tuple[float, ...], arrival_rate: float, service_rate: float) -> MixedSpeeds:
    capacity = service_rate * sum(speeds)
    if arrival_rate >= capacity:
        return MixedSpeeds(1.0, float("inf"), len(speeds) / capacity)
    classes = sorted(Counter(speeds).items(), reverse=True)
    counts = [count for _, count in classes]
    if arrival_rate <= 0:
        return MixedSpeeds(0.0, 0.0, 1 / (service_rate * classes[0][0]))
    if np.prod([count + 1 for count in counts]) > MOST_STATES:
        waits = float(erlang_c(len(speeds), arrival_rate * len(speeds) / capacity))
        return MixedSpeeds(waits, waits / (capacity - arrival_rate), len(speeds) / capacity)
    states = list(product(*(range(count + 1) for count in counts)))
    index = {state: place for place, state in enumerate(states)}
    moves: list[tuple[int, int, float]] = []
    for state, here in index.items():
        free = next((kind for kind, count in enumerate(counts) if state[kind] < count), None)
        if free is not None:
            moves.append((here, index[_changed(state, free, 1)], arrival_rate))
        for kind, (speed, _) in enumerate(classes):
            if state[kind]:
                moves.append((here, index[_changed(state, kind, -1)], state[kind] * speed * service_rate))
    source, target, rate = (np.array(column) for column in zip(*moves, strict=True))
    ratio = arrival_rate / capacity
    total = np.ones(len(states))
    total[-1] += ratio / (1 - ratio)  # all busy and some waiting
    probability = _stationary(source, target, rate, total)
    waits = float(probability[-1]) / (1 - ratio)
    busy = float(np.sum(probability * total * [sum(state) for state in states]))
    return MixedSpeeds(waits, waits / (capacity - arrival_rate), busy / arrival_rate)


def _changed(state: tuple[int, ...], kind: int, by: int) -> tuple[int, ...]:
    return (*state[:kind], state[kind] + by, *state[kind + 1 :])


def _stationary(source: Ints, target: Ints, rate: Floats, total: Floats) -> Floats:
    """Probabilities of the states: what flows in flows out, and weighted with ``total`` they add up to 1."""
    size = len(total)
    here = np.arange(size)
    outflow = np.bincount(source, weights=rate, minlength=size)
    rows, columns = np.concatenate([target, here]), np.concatenate([source, here])
    entries = np.concatenate([rate, -outflow])
    balanced = rows != 0  # one balance follows from the others and makes room for the total
    rows = np.concatenate([rows[balanced], np.zeros(size, dtype=np.int64)])
    columns, entries = np.concatenate([columns[balanced], here]), np.concatenate([entries[balanced], total])
    one = np.eye(1, size).ravel()
    if size <= 200:
        matrix = np.zeros((size, size))
        np.add.at(matrix, (rows, columns), entries)
        return np.asarray(np.linalg.solve(matrix, one), dtype=np.float64)
    return np.asarray(spsolve(coo_matrix((entries, (rows, columns)), shape=(size, size)).tocsr(), one))
