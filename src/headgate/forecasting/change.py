"""When the past is no guide any more: a series has left what was forecast of it, to one side and for good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue

__all__ = ["ChangePoint"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The last ``run`` observations all lie on one side of what was forecast before the first of them, and far off.

    Far is ``limit`` times the noise (the mean absolute error one step ahead) times √h, h steps after the forecast. One
    outlier is not a change, nor is noise: for normal errors three in a row are one in a thousand million.
    """

    run: int = 3
    limit: float = 6.0

    def __post_init__(self) -> None:
        if self.run < 1 or not self.limit > 0:
            raise BadValue(f"run and limit are {self.run} and {self.limit:g}", "at least 1 and above 0")

    def found(self, values: Floats, told: Floats, noise: Floats) -> Bools:
        """Which series have changed: observations, forecasts of them and the noise before; a gap is no evidence.

        >>> ChangePoint().found(np.array([[9.0, 9.5, 9.0]]), np.zeros((1, 3)), np.array([0.5])).tolist()
        [True]
        """
        far = self.limit * noise[:, None] * np.sqrt(np.arange(1, self.run + 1))
        off = values - told
        with np.errstate(invalid="ignore"):
            found: Bools = (off > far).all(axis=1) | (off < -far).all(axis=1)
        return found
