"""The generator of machine performance is calibrated to what PLAN-AHEAD reports (Sec. II)."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.errors import BadValue
from headgate.model.arrays import Floats
from headgate.simulation.variability import EC2, FUTUREGRID, TracePool


def _below(values: Floats, limit: float) -> float:
    return float((values < limit).mean())


def _jumps(values: Floats) -> float:
    """Share of consecutive five-minute slots between which performance changes by more than a fifth."""
    return float((np.abs(np.diff(values, axis=1)) / values[:, :-1] > 0.2).mean())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ec2(seed: int) -> None:
    pool = EC2.pool(seed, traces=600, hours=48)
    assert pool.every_s == 300.0
    assert _below(pool.speed, 0.8) == pytest.approx(0.23, abs=0.02)
    assert _jumps(pool.speed) == pytest.approx(0.25, abs=0.02)
    assert _below(pool.bandwidth, 0.8) == pytest.approx(0.22, abs=0.02)
    assert 0.45 < 1 - _below(pool.latency, 0.7) < 0.55
    for network in (pool.bandwidth, pool.latency):
        assert 0.20 <= _jumps(network) <= 0.30
    # Machines differ (Fig. 1c): some are disturbed much more than others.
    means = pool.speed.mean(axis=1)
    assert np.quantile(means, 0.9) - np.quantile(means, 0.1) > 0.1
    assert (np.quantile(pool.speed, 0.01, axis=1) < 0.6).mean() > 0.5


def test_a_private_cloud_varies_less() -> None:
    pool = FUTUREGRID.pool(1, traces=600, hours=48)
    assert _below(pool.speed, 0.8) < 0.10
    assert _jumps(pool.speed) < 0.15


def test_one_seed_gives_one_pool() -> None:
    one, same, other = (EC2.pool(seed, 10, 4) for seed in (1, 1, 2))
    assert np.array_equal(one.speed, same.speed)
    assert not np.array_equal(one.speed, other.speed)
    assert not np.array_equal(one.speed, one.bandwidth)


def test_means_over_other_intervals_keep_the_whole() -> None:
    pool = EC2.pool(1, 20, 10)
    for interval_s in (60.0, 120.0, 300.0, 450.0):
        other = pool.every(interval_s)
        assert other.speed.mean() == pytest.approx(pool.speed.mean(), rel=1e-3)
        assert other.every_s == interval_s


def test_coefficients_that_cannot_be_are_told() -> None:
    good = np.ones((1, 2))
    for bad in (np.zeros((1, 2)), np.full((1, 2), np.nan), np.ones((0, 2))):
        with pytest.raises(BadValue):
            TracePool(bad, good, good, 300.0)
    with pytest.raises(BadValue, match="another shape"):
        TracePool(good, np.ones((2, 2)), good, 300.0)
