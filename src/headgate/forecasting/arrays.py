"""The base of models: a clock, arrays with a row for each series, and a restart of some rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ArrayModel", "Recent", "damped_sums"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class ArrayModel:
    """State in arrays whose first axis is the series; ``ARRAYS`` names them."""

    ARRAYS: tuple[str, ...] = ()

    def __init__(self, series: int, horizon: int) -> None:
        self.series = series
        self.horizon = horizon
        self.clock = 0

    def fresh(self, series: int) -> ArrayModel:
        """Another model of the same settings that has seen nothing."""
        raise NotImplementedError

    def step(self, values: Floats) -> None:
        raise NotImplementedError

    def restart(self, which: Bools, recent: Floats) -> None:
        """What the model would be had it seen nothing but ``recent``."""
        fresh = self.fresh(int(which.sum()))
        fresh.clock = self.clock - recent.shape[1]
        for column in recent.T:
            fresh.step(column)
        for name in self.ARRAYS:
            getattr(self, name)[which] = getattr(fresh, name)


class Recent:
    """Which of several settings has lately forecast best: discounted absolute errors, series × settings.

    Settings are chosen by what is asked of them: errors one step, half the horizon and the whole horizon ahead.
    """

    def __init__(self, series: int, settings: int, horizon: int, memory: float) -> None:
        self.ahead = tuple(sorted({1, (horizon + 1) // 2, horizon}))
        self.keep = 1 - 1 / memory
        self.sums = np.zeros((series, settings))

    def add(self, errors: Floats) -> None:
        """Add the errors of one horizon at this moment; NaN where there was nothing to compare."""
        self.sums += np.nan_to_num(np.abs(errors), nan=0.0, posinf=0.0)

    def fade(self, seen: Bools) -> None:
        """Let what was count less, for series that were observed."""
        self.sums *= np.where(seen, self.keep, 1.0)[:, None]

    def best(self) -> npt.NDArray[np.intp]:
        """The best setting of each series; the first of equals."""
        return np.asarray(np.argmin(self.sums, axis=1))


def damped_sums(damping: Floats, steps: int) -> Floats:
    """By how many times its trend a level moves within 1, 2, ... steps: sums of powers of the damping, steps first.

    >>> damped_sums(np.array([1.0, 0.5]), 3).tolist()
    [[1.0, 0.5], [2.0, 0.75], [3.0, 0.875]]
    """
    powers: Floats = damping[None, :] ** np.arange(1, steps + 1)[:, None]
    return np.cumsum(powers, axis=0)
