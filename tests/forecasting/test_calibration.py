"""Quantiles mean what they say: what comes lies below the quantile of level p in a share p of cases."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from headgate.forecasting.holt import Holt
from headgate.forecasting.intervals import FEWEST, RecentErrors
from headgate.forecasting.methods import recipe_of
from headgate.forecasting.naive import Naive
from headgate.forecasting.online import Settings, start

Floats = npt.NDArray[np.float64]
SERIES, STEPS, HORIZON = 150, 200, 5


def _level(rng: np.random.Generator) -> Floats:
    return 100 + rng.normal(0, 5, (SERIES, STEPS + HORIZON))


def _skewed(rng: np.random.Generator) -> Floats:
    return rng.exponential(20.0, (SERIES, STEPS + HORIZON))


def _walk(rng: np.random.Generator) -> Floats:
    return 500 + np.cumsum(rng.normal(0, 3, (SERIES, STEPS + HORIZON)), axis=1)


def _noise_that_grows(rng: np.random.Generator) -> Floats:
    """Ten times the noise in the second half: intervals must follow."""
    size = np.where(np.arange(STEPS + HORIZON) < STEPS // 2, 1.0, 10.0)
    return 200 + size * rng.normal(0, 2, (SERIES, STEPS + HORIZON))


@pytest.mark.parametrize("make", [_level, _skewed, _walk, _noise_that_grows])
@pytest.mark.parametrize("name", ["naive", "holt", "kalman"])
def test_shares_below_quantiles(make: object, name: str) -> None:
    values = make(np.random.default_rng(21))  # type: ignore[operator]
    forecaster = start(recipe_of(name), SERIES, Settings(horizon=HORIZON))
    forecaster.update(values[:, :STEPS])
    forecast = forecaster.forecast(HORIZON)
    came = values[:, STEPS:, None]
    below = (came <= forecast.quantiles).mean(axis=(0, 1))
    # 150 series × 5 steps that are not independent: three standard errors of some 200 draws.
    assert below == pytest.approx(np.array(forecast.levels), abs=0.09)


def test_each_horizon_has_its_own_width() -> None:
    values = _walk(np.random.default_rng(22))
    forecaster = start(Naive(), SERIES, Settings(horizon=HORIZON))
    forecaster.update(values[:, :STEPS])
    forecast = forecaster.forecast(HORIZON)
    width = np.median(forecast.at(0.9) - forecast.at(0.1), axis=0)
    assert width / width[0] == pytest.approx(np.sqrt(np.arange(1, HORIZON + 1)), rel=0.15)


def test_the_empirical_quantile_is_read_off() -> None:
    """With errors of constant noise the spread is that of the order statistics."""
    errors = RecentErrors(1, 1, window=200)
    drawn = np.random.default_rng(23).permutation(np.linspace(-1, 1, 199))
    for each in drawn:
        errors.add(np.array([each]), np.array([[0.0]]))
    in_order = np.sort(errors.scores[0, 0][~np.isnan(errors.scores[0, 0])])
    place = 0.9 * (len(in_order) + 1) - 1
    by_hand = np.interp(place, np.arange(len(in_order)), in_order) * errors.noise[0]
    assert errors.spread(1, (0.9,))[0, 0, 0] == pytest.approx(by_hand)


def test_few_errors_are_taken_as_normal() -> None:
    errors = RecentErrors(1, 2, window=50)
    for each in (1.0, -1.0, 1.0):
        errors.add(np.array([each]), np.array([[0.0, np.nan]]))
    assert len(errors.scores[0, 0]) > FEWEST > 3
    spread = errors.spread(2, (0.5, 0.975))
    assert spread[0, 0].tolist() == pytest.approx([0.0, 1.96 * np.sqrt(np.pi / 2)], rel=1e-3)
    assert spread[0, 1, 1] == pytest.approx(spread[0, 0, 1] * np.sqrt(2))


def test_intervals_after_a_constant_stretch_are_not_infinite() -> None:
    values = np.concatenate([np.full(60, 5.0), [900.0, 900.0, 900.0, 900.0, 900.0]])
    forecaster = start(Holt(), 1, Settings(horizon=HORIZON))
    forecaster.update(values[None, :])
    forecast = forecaster.forecast(HORIZON)
    assert (forecast.at(0.95) < 20_000).all()
    assert forecast.mean[0] == pytest.approx(900, rel=0.5)
