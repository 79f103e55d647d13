"""Backtests add up right, and series come onto their grid right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from headgate.errors import BadValue
from headgate.forecasting.backtest import backtest
from headgate.forecasting.forecast import Forecast
from headgate.forecasting.methods import recipe_of
from headgate.forecasting.naive import Naive, SeasonalNaive
from headgate.forecasting.online import Settings, start
from headgate.forecasting.oracle import Oracle
from headgate.forecasting.table import on_grid

Floats = npt.NDArray[np.float64]


def test_seasonal_naive_is_the_yardstick() -> None:
    values = np.random.default_rng(1).uniform(10, 20, (5, 120))
    forecaster = start(SeasonalNaive(12), 5, Settings(horizon=12))
    scores = backtest(forecaster, values, horizon=12, season=12, warm_up=12)
    assert scores.mase == pytest.approx(1.0, abs=0.05)
    assert scores.origins == 120 - 12 - 12 + 1


def test_naive_on_a_line_is_off_by_the_distance() -> None:
    scores = backtest(start(Naive(), 1), np.arange(60.0)[None, :], horizon=4, warm_up=10)
    assert scores.mase_by_step == pytest.approx([1.0, 2.0, 3.0, 4.0])


def test_an_oracle_is_never_wrong() -> None:
    values = np.random.default_rng(2).uniform(10, 20, (3, 80))
    scores = backtest(Oracle().start(values), values, horizon=5, warm_up=7)
    assert scores.mase == 0
    assert scores.pinball.tolist() == [0.0, 0.0, 0.0]
    assert scores.coverage == {0.9: 1.0, 0.8: 1.0, 0.5: 1.0}


def test_figures_by_hand() -> None:
    class Says:
        """Always 10, within 8 and 12."""

        name, series = "says", 1

        def update(self, observations: npt.ArrayLike) -> None:
            pass

        def forecast(self, horizon: int) -> Forecast:
            quantiles = np.tile(np.array([8.0, 12.0]), (1, horizon, 1))
            return Forecast(np.full((1, horizon), 10.0), quantiles, (0.05, 0.95))

    values = np.array([[9.0, 11.0, 13.0, 7.0, 10.0]])
    scores = backtest(Says(), values, horizon=1, warm_up=1)
    assert scores.error.tolist() == [[(1 + 3 + 3 + 0) / 4]]
    assert scores.scale.tolist() == [(2 + 2 + 6 + 3) / 4]
    assert scores.coverage[0.9] == pytest.approx(0.5)
    low = [0.05 * 3, 0.05 * 5, 0.95 * 1, 0.05 * 2]
    high = [0.05 * 1, 0.95 * 1, 0.05 * 5, 0.05 * 2]
    assert scores.pinball[0] == pytest.approx((sum(low) + sum(high)) / 2 / 4 / scores.scale[0])


def test_no_more_moments_than_are_asked_for_and_gaps_are_left_out() -> None:
    values = np.random.default_rng(3).uniform(10, 20, (2, 300))
    values[0, 100:200] = np.nan
    steps: list[int] = []
    scores = backtest(
        start(recipe_of("holt"), 2, Settings(horizon=3)), values, 3, warm_up=20, origins=50,
        progress=lambda done, _: steps.append(done),
    )  # fmt: skip
    assert scores.origins <= 50
    assert steps == sorted(steps)
    assert np.isfinite(scores.mase)


def test_a_series_that_never_changes_has_no_mase() -> None:
    scores = backtest(start(Naive(), 2), np.stack([np.full(50, 3.0), np.arange(50.0)]), horizon=1, warm_up=5)
    assert np.isnan(scores.mase_by_series[0])
    assert scores.mase == pytest.approx(1.0)
    assert scores.as_dict()["coverage"]["0.9"] is not None
    alone = backtest(start(Naive(), 1), np.full((1, 50), 3.0), horizon=1, warm_up=5)
    assert alone.as_dict()["mase"] is None


def test_too_short_a_series_is_refused() -> None:
    with pytest.raises(BadValue, match="10 steps"):
        backtest(start(Naive(), 1), np.zeros((1, 10)), horizon=5, warm_up=8)


def test_good_forecasters_beat_the_yardstick_on_a_noisy_wave() -> None:
    rng = np.random.default_rng(4)
    wave = 100 + 50 * np.sin(2 * np.pi * np.arange(240) / 24)
    values = wave + rng.normal(0, 10, (10, 240))
    scores = {}
    for name in ("seasonal-naive", "holt-winters", "ensemble"):
        forecaster = start(recipe_of(name, 24), 10, Settings(horizon=6))
        scores[name] = backtest(forecaster, values, 6, 24, warm_up=120, origins=40)
    assert scores["holt-winters"].mase < 0.95
    assert scores["ensemble"].mase < 0.95
    assert scores["ensemble"].pinball.mean() < scores["seasonal-naive"].pinball.mean()


def test_measurements_come_onto_a_grid() -> None:
    times = np.array([100.0, 161.0, 219.0, 400.0])
    table = on_grid([("a", times, np.array([1.0, 2.0, 3.0, 6.0])), ("b", times[:2], np.array([7.0, 8.0]))])
    assert table.step_s == pytest.approx(61.0)
    assert table.start_s == 100.0
    assert table.values.tolist()[0][:3] == [1.0, 2.0, 3.0]
    assert np.isnan(table.values[0, 3:5]).all()
    assert table.values[0, 5] == 6.0
    assert np.isnan(table.values[1, 2:]).all()


def test_longer_steps_are_means() -> None:
    times = np.arange(0.0, 600.0, 60.0)
    table = on_grid([("a", times, np.arange(10.0))], step_s=300.0)
    assert table.values.tolist() == [[2.0, 7.0]]


def test_too_many_steps_are_refused() -> None:
    times = np.array([0.0, 1e9])
    with pytest.raises(BadValue, match=r"steps of 0\.01 s"):
        on_grid([("a", times, times)], step_s=0.01)
    with pytest.raises(BadValue, match="single measurement"):
        on_grid([("a", times[:1], times[:1])])
    with pytest.raises(BadValue, match="no series"):
        on_grid([])
