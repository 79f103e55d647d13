"""Estimates from counts, against processes of known variability."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.queueing.fitting.estimate import dispersion_of


@pytest.mark.parametrize("shape", [0.5, 1.0, 4.0, 100.0])
def test_dispersion_is_the_variability_of_the_times_between_arrivals(shape: float) -> None:
    """Gamma renewal processes, whose rate grows by half meanwhile: their scv is 1 / shape."""
    rng = np.random.default_rng(int(shape * 10))
    operational = np.cumsum(rng.gamma(shape, 1 / shape, 400_000))
    seconds = operational / (50.0 + 25.0 * operational / operational[-1])
    lengths = rng.uniform(5.0, 15.0, 400)
    edges = np.concatenate([[0.0], np.cumsum(lengths)])
    counts = np.diff(np.searchsorted(seconds, edges))
    measured = dispersion_of(list(zip(counts.astype(float).tolist(), lengths.tolist(), strict=True)))
    assert measured == pytest.approx(1 / shape, rel=0.25, abs=0.01)
