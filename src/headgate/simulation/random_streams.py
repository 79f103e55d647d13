"""Random numbers by coordinate: they depend only on the seed and the identity of the thing.

So all policies meet the same world: the performance of a machine does not depend on the order of acquisitions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["INTERRUPTION", "machine_trace", "uniform_numbers"]

TRACE, MOMENT, INTERRUPTION = 1, 2, 3

Words = npt.NDArray[np.uint64]


def _mixed(word: Words) -> Words:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def uniform_numbers(seed: int, purpose: int, *coordinates: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1), one for each coordinate (arrays are broadcast).

    >>> float(uniform_numbers(1, 0, 5, 7)) == float(uniform_numbers(1, 0, [4, 5], [7])[1])
    True
    >>> bool(abs(uniform_numbers(1, 0, np.arange(10_000)).mean() - 0.5) < 0.01)
    True
    """
    with np.errstate(over="ignore"):
        word = np.asarray(_mixed(np.asarray(seed % 2**64, dtype=np.uint64)))
        for each in (purpose, *coordinates):
            number = np.asarray(each).astype(np.uint64)
            word = _mixed(word + (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))
    return np.asarray((word >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def machine_trace(
    seed: int, replication: npt.ArrayLike, number: npt.ArrayLike, pool: tuple[int, ...]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The trace of a pool (traces × moments) that a machine follows, and from which moment on."""
    traces, moments = pool
    trace = (uniform_numbers(seed, TRACE, replication, number) * traces).astype(np.int64)
    return trace, (uniform_numbers(seed, MOMENT, replication, number) * moments).astype(np.int64)
