"""Forecasters against what is known without them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import BadValue
from headgate.forecasting.autoregressive import Autoregressive
from headgate.forecasting.ensemble import Ensemble
from headgate.forecasting.holt import Holt
from headgate.forecasting.holt_winters import HoltWinters
from headgate.forecasting.kalman import Kalman
from headgate.forecasting.naive import Naive, SeasonalNaive, WindowMean
from headgate.forecasting.online import Settings, start

Floats = npt.NDArray[np.float64]
ANY = Settings(horizon=6, non_negative=False)


@given(st.floats(-1e3, 1e3), st.floats(-50, 50), st.integers(4, 30))
@settings(max_examples=30, deadline=None)
def test_holt_is_exact_on_a_line(begin: float, slope: float, steps: int) -> None:
    line = begin + slope * np.arange(steps + 6)
    forecaster = start(Holt(), 1, ANY)
    forecaster.update(line[None, :steps])
    assert forecaster.forecast(6).mean[0] == pytest.approx(line[steps:], rel=1e-6, abs=1e-6)


def test_holt_goes_along_a_line_through_gaps() -> None:
    line = 3.0 * np.arange(40)
    holes = line.copy()
    holes[[1, 2, 10, 11, 12, 30]] = np.nan
    forecaster = start(Holt(), 1, ANY)
    forecaster.update(holes[None, :36])
    assert forecaster.forecast(4).mean[0] == pytest.approx(line[36:], rel=1e-6)


def test_simple_smoothing_is_the_weighted_mean_of_the_past() -> None:
    values = np.random.default_rng(2).normal(10, 3, 50)
    model = Holt(alphas=(0.3,), betas=(0.0,), dampings=(0.0,)).model(1, 3)
    for value in values:
        model.step(np.array([value]))
    weights = 0.3 * 0.7 ** np.arange(49)[::-1]
    by_hand = (weights * values[1:]).sum() + 0.7**49 * values[0]
    assert model.path(3)[0] == pytest.approx([by_hand] * 3)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=9), st.integers(0, 8))
@settings(max_examples=30, deadline=None)
def test_seasonal_forecasts_are_exact_on_what_repeats(pattern: list[float], more: int) -> None:
    season = len(pattern)
    values = np.tile(pattern, 6)[: 4 * season + more % season + 6]
    known = len(values) - 6
    for recipe in (SeasonalNaive(season), HoltWinters(season)):
        forecaster = start(recipe, 1, Settings(horizon=6))
        forecaster.update(values[None, :known])
        assert forecaster.forecast(6).mean[0] == pytest.approx(values[known:], rel=1e-9, abs=1e-6)


def test_holt_winters_learns_a_season_on_a_line() -> None:
    at = np.arange(24 * 12)
    values = 100 + 0.1 * at + 20 * np.sin(2 * np.pi * at / 24)
    forecaster = start(HoltWinters(24), 1, Settings(horizon=12))
    forecaster.update(values[None, :-12])
    assert np.abs(forecaster.forecast(12).mean[0] - values[-12:]).max() < 1.0


def test_a_gap_in_the_first_season_is_filled_from_its_neighbours() -> None:
    pattern = np.array([0.0, 10.0, 20.0, 10.0])
    values = np.tile(pattern, 5)
    values[2] = np.nan
    forecaster = start(HoltWinters(4), 1, Settings(horizon=4))
    forecaster.update(values[None, :])
    assert np.abs(forecaster.forecast(4).mean[0] - pattern).max() < 5


def test_autoregression_finds_its_weights() -> None:
    rng = np.random.default_rng(4)
    weights = np.array([(0.7, 0.0, 0.0), (1.2, -0.5, 0.0), (0.4, 0.3, -0.2)])
    values = np.full((3, 3_000), 10.0)
    for at in range(3, values.shape[1]):
        values[:, at] = 2.0 + (weights * values[:, at - 3 : at][:, ::-1]).sum(axis=1) + rng.normal(0, 1, 3)
    model = Autoregressive(order=3, ridge=1e-3, memory=1e6).model(3, 6)
    for column in values.T:
        model.step(column)
    assert model.weights[:, 1:] == pytest.approx(weights, abs=0.06)
    assert model.weights[:, 0] == pytest.approx(2.0, rel=0.25)
    # Far ahead the forecast is the mean of the process.
    assert model.path(200)[:, -1] == pytest.approx(2.0 / (1 - weights.sum(axis=1)), rel=0.1)


def test_autoregression_is_least_squares_with_a_penalty() -> None:
    """Against a dense solution in one go, without a discount and with the same penalty."""
    rng = np.random.default_rng(6)
    values = np.cumsum(rng.normal(0, 1, 120)) + 100
    model = Autoregressive(order=2, ridge=2.0, memory=1e12).model(1, 3)
    for value in values:
        model.step(np.array([value]))
    rows = np.stack([np.ones(118), values[1:-1], values[:-2]], axis=1)
    naive = np.array([0.0, 1.0, 0.0])
    variance = rows[:, 1:].var(axis=0).mean()
    penalty = np.diag([1e-6 * 118, 2.0 * variance, 2.0 * variance])
    by_hand = naive + np.linalg.solve(rows.T @ rows + penalty, rows.T @ (values[2:] - rows @ naive))
    assert model.weights[0] == pytest.approx(by_hand, rel=1e-3, abs=1e-3)


def test_with_nothing_to_learn_from_autoregression_is_naive() -> None:
    model = Autoregressive().model(1, 3)
    for value in (5.0, 9.0, 4.0):
        model.step(np.array([value]))
    assert model.path(3).tolist() == [[4.0, 4.0, 4.0]]


def test_the_mean_of_a_window() -> None:
    model = WindowMean(3).model(1, 2)
    for value in (50.0, 1.0, np.nan, 4.0):
        model.step(np.array([value]))
    assert model.path(2).tolist() == [[2.5, 2.5]]
    for _ in range(3):
        model.step(np.array([np.nan]))
    assert model.path(1).tolist() == [[4.0]]


def test_an_ensemble_is_its_best_member_where_others_err() -> None:
    line = 5.0 * np.arange(60)
    forecaster = start(Ensemble((Naive(), Holt())), 1, Settings(horizon=3))
    forecaster.update(line[None, :57])
    assert forecaster.forecast(3).mean[0] == pytest.approx(line[57:], rel=1e-6)


def test_an_ensemble_weighs_by_horizon() -> None:
    """Right after an observation the last value is best, farther off the season: both have their place."""
    rng = np.random.default_rng(8)
    at = np.arange(480)
    values = 100 + 10 * np.sin(2 * np.pi * at / 12) + np.cumsum(rng.normal(0, 1.5, 480))
    model = Ensemble((Naive(), SeasonalNaive(12))).model(1, 6)
    for value in values:
        model.step(np.array([value]))
    weights = model.weights()[0]
    assert weights.sum(axis=0) == pytest.approx(1.0)
    assert weights[1, 0] < 0.5 < weights[1, 5]


def _posterior(values: Floats, q: float, r: float, phi: float, prior: float) -> tuple[float, float]:
    """Level and trend after all measurements, by conditioning one large normal distribution: no recursion at all.

    Every state is a linear map of what it began with and of all disturbances.
    """
    steps = len(values)
    transition = np.array([[1.0, phi], [0.0, phi]])
    sources = 2 + 2 * steps
    spread = np.concatenate([[prior, prior if r > 0 else 0.0], np.tile([q, r], steps)])
    maps, state = [], np.zeros((2, sources))
    state[:, :2] = np.eye(2)
    for at in range(steps):
        if at:
            state = transition @ state
            state[:, 2 + 2 * at : 4 + 2 * at] += np.eye(2)
        maps.append(state.copy())
    seen = ~np.isnan(values)
    measured = np.array([each[0] for each in maps])[seen]
    covariance = (measured * spread) @ measured.T + np.eye(seen.sum())
    across = (maps[-1] * spread) @ measured.T
    # Level and trend begin anywhere; the first measurement is where we count from.
    forecast = across @ np.linalg.solve(covariance, values[seen] - values[0])
    return float(forecast[0] + values[0]), float(forecast[1])


@pytest.mark.parametrize(("q", "r", "phi"), [(0.1, 0.0, 0.0), (1.0, 0.1, 0.9), (0.01, 0.001, 1.0), (2.0, 0.5, 0.8)])
def test_kalman_is_the_conditional_mean(q: float, r: float, phi: float) -> None:
    rng = np.random.default_rng(10)
    values = 50 + np.cumsum(rng.normal(0, 1, 40)) + rng.normal(0, 1, 40)
    values[[7, 20, 21, 22]] = np.nan
    model = Kalman(wanders=((q, r),), dampings=(phi,), limits=(float("inf"),)).model(1, 5)
    for value in values:
        model.step(np.array([value]))
    level, trend = _posterior(values, q, r, phi if r > 0 else 0.0, 1e7)
    ahead = np.cumsum(phi ** np.arange(1, 6)) if r > 0 else np.zeros(5)
    assert model.path(5)[0] == pytest.approx(level + trend * ahead, rel=1e-5)


def test_kalman_lets_an_outlier_pass_and_follows_a_step() -> None:
    rng = np.random.default_rng(11)
    values = 100 + rng.normal(0, 1, 80)
    robust = Kalman(wanders=((0.01, 0.0),), limits=(4.5,)).model(1, 3)
    for value in [*values[:60], 500.0, *values[60:62]]:
        robust.step(np.array([value]))
    assert robust.path(1)[0, 0] == pytest.approx(100, abs=1.5)
    for value in 300 + values[:3] - 100:
        robust.step(np.array([value]))
    assert robust.path(1)[0, 0] == pytest.approx(300, abs=5)


def test_after_a_change_the_past_is_forgotten() -> None:
    rng = np.random.default_rng(12)
    values = np.concatenate([rng.normal(10, 1, 100), rng.normal(200, 1, 6)])[None, :]
    slow = Holt(alphas=(0.05,), betas=(0.05,), dampings=(0.8,))
    with_reset, without = start(slow, 1), start(slow, 1, Settings(change=None))
    for each in (with_reset, without):
        each.update(values)
    assert with_reset.changes.tolist() == [1]
    assert with_reset.forecast(1).mean[0, 0] == pytest.approx(200, abs=5)
    assert without.forecast(1).mean[0, 0] < 100


def test_series_that_jump_now_and_then_have_not_changed() -> None:
    rng = np.random.default_rng(13)
    states = np.repeat(rng.integers(0, 2, 60), 10)
    values = (50 + 40 * states + rng.normal(0, 1, 600))[None, :]
    forecaster = start(Naive(), 1)
    forecaster.update(values)
    assert forecaster.changes[0] <= 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Holt(alphas=()),
        lambda: Holt(alphas=(1.2,)),
        lambda: Holt(memory=1),
        lambda: HoltWinters(1),
        lambda: Kalman(wanders=((-1.0, 0.0),)),
        lambda: Kalman(limits=(0.0,)),
        lambda: Autoregressive(order=0),
        lambda: Autoregressive(ridge=0),
        lambda: SeasonalNaive(1),
        lambda: WindowMean(0),
        lambda: Ensemble(()),
    ],
)
def test_settings_that_cannot_be_are_refused(make: object) -> None:
    with pytest.raises(BadValue):
        make()  # type: ignore[operator]
