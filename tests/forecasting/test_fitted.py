"""Models of statsforecast behind our protocol, where that package is installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from headgate.errors import BadValue
from headgate.forecasting.fitted import FITTED, Fitted
from headgate.forecasting.methods import recipe_of
from headgate.forecasting.online import Settings, start


@pytest.mark.slow  # the package takes seconds to import
def test_a_wave_is_forecast() -> None:
    pytest.importorskip("statsforecast")
    wave = 50 + 20 * np.sin(2 * np.pi * np.arange(66) / 12)
    noise = np.random.default_rng(1).normal(0, 1, 66)
    forecaster = start(recipe_of("auto-theta", 12), 3, Settings(horizon=6))
    forecaster.update(np.stack([wave + noise, np.zeros(66), np.full(66, np.nan)])[:, :60])
    forecast = forecaster.forecast(6)
    assert np.abs(forecast.mean[0] - wave[60:]).max() < 8
    assert forecast.mean[1].tolist() == [0.0] * 6
    assert np.isnan(forecast.mean[2]).all()


@pytest.mark.slow  # the package takes seconds to import
def test_between_two_fits_the_last_forecast_is_shifted() -> None:
    pytest.importorskip("statsforecast")
    model = Fitted("auto-ets", every=4).model(1, 3)
    for value in (1.0, 3.0):
        model.step(np.array([value]))
    assert model.path(3).tolist() == [[3.0, 3.0, 3.0]]
    for value in np.arange(5.0, 25.0, 2.0):
        model.step(np.array([value]))
    assert model.clock == model.fitted_at == 12
    before = model.path(4)
    model.step(np.array([25.0]))
    assert model.path(3)[0].tolist() == before[0, 1:].tolist()
    model.restart(np.array([True]), np.array([[90.0, 91.0]]))
    assert model.path(2).tolist() == [[91.0, 91.0]]


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    for name in FITTED:
        with pytest.raises(BadValue, match="needs the package 'statsforecast'"):
            start(recipe_of(name), 1)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadValue, match="unknown model"):
        Fitted("auto-magic")
    with pytest.raises(BadValue, match="every"):
        Fitted(every=0)
