"""Measurements at any times, put on a grid of equal steps: one table of series × steps, with gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headgate.errors import BadValue
from headgate.model.arrays import Floats

__all__ = ["SeriesTable", "on_grid"]

MOST_STEPS = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class SeriesTable:
    """Some series with equal steps; NaN is a gap."""

    names: tuple[str, ...]
    values: Floats
    """Series × steps."""

    step_s: float
    start_s: float = 0.0

    @property
    def steps(self) -> int:
        return int(self.values.shape[1])


def on_grid(measured: Sequence[tuple[str, Floats, Floats]], step_s: float | None = None) -> SeriesTable:
    """Series of (name, seconds, values) as means over steps; a step without a measurement is a gap.

    Without ``step_s`` the usual time between two measurements is the step.

    >>> table = on_grid([("a", np.array([0.0, 60.0, 180.0]), np.array([1.0, 2.0, 4.0]))])
    >>> table.step_s, table.values.tolist()
    (60.0, [[1.0, 2.0, nan, 4.0]])
    """
    if not measured:
        raise BadValue("no series", "at least one")
    apart = np.concatenate([np.diff(times) for _, times, _ in measured])
    step = step_s or (float(np.quantile(apart, 0.5, method="lower")) if len(apart) else 0.0)
    if not step > 0:
        raise BadValue("a single measurement", "at least two, so that the time between them is known")
    begin = min(float(times[0]) for _, times, _ in measured)
    end = max(float(times[-1]) for _, times, _ in measured)
    # A measurement belongs to the step that it is nearest to the beginning of, unless steps are longer than its own.
    shift = 0.5 if step_s is None else 0.0
    count = int((end - begin) / step + shift) + 1
    if count * len(measured) > MOST_STEPS * 10 or count > MOST_STEPS:
        raise BadValue(f"{count:,} steps of {step:g} s for {len(measured)} series", "fewer: choose a longer step")
    values = np.full((len(measured), count), np.nan)
    for row, (_, times, given) in enumerate(measured):
        places = ((times - begin) / step + shift + 1e-9).astype(np.int64)
        sums = np.bincount(places, weights=given, minlength=count)
        counts = np.bincount(places, minlength=count)
        values[row] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return SeriesTable(tuple(name for name, _, _ in measured), values, step, begin)
