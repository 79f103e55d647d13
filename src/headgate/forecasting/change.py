"""Change detection: a series has left its forecast to one side for several steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.errors import BadValue
from headgate.model.arrays import Bools, Floats

__all__ = ["ChangePoint"]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The last ``run`` observations all lie on one side of what was forecast before the first of them, and far off.

    Far is ``limit`` times the largest error that forecasts one step ahead have lately had: one outlier is not a change,
    and a jump is none where series jump now and then.
    """

    run: int = 3
    limit: float = 2.0

    def __post_init__(self) -> None:
        if self.run < 1 or not self.limit > 0:
            raise BadValue(f"run and limit are {self.run} and {self.limit:g}", "at least 1 and above 0")

    def changed(self, values: Floats, forecasts: Floats, largest: Floats) -> Bools:
        """Which series have changed: observations, forecasts, and the largest error before; a gap is no evidence.

        >>> ChangePoint().changed(np.array([[9.0, 9.5, 9.0]]), np.zeros((1, 3)), np.array([0.5])).tolist()
        [True]
        """
        far = self.limit * largest[:, None]
        off = values - forecasts
        with np.errstate(invalid="ignore"):
            return np.asarray((off > far).all(axis=1) | (off < -far).all(axis=1))
