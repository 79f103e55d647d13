"""What every forecaster must do, whatever is in it; a new one in METHODS joins for free."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headgate.errors import BadValue
from headgate.forecasting.forecast import Forecast
from headgate.forecasting.forecaster import Forecaster
from headgate.forecasting.methods import METHODS, recipe_of
from headgate.forecasting.online import OnlineForecaster, Settings, start
from headgate.forecasting.oracle import Oracle

Floats = npt.NDArray[np.float64]
SEASON, HORIZON = 6, 4
NAMES = tuple(METHODS)
every = pytest.mark.parametrize("name", NAMES)


def _started(name: str, series: int, **given: object) -> OnlineForecaster:
    return start(recipe_of(name, SEASON), series, Settings(horizon=HORIZON, **given))  # type: ignore[arg-type]


def _of(name: str, values: npt.ArrayLike, horizon: int = HORIZON, **given: object) -> Forecast:
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    forecaster = _started(name, len(rows), **given)
    forecaster.update(rows)
    forecast = forecaster.forecast(horizon)
    _is_sane(forecast, len(rows), horizon)
    return forecast


def _is_sane(forecast: Forecast, series: int, horizon: int) -> None:
    assert forecast.mean.shape == (series, horizon)
    assert forecast.quantiles.shape == (series, horizon, len(forecast.levels))
    assert np.isfinite(forecast.mean).all()
    assert np.isfinite(forecast.quantiles).all()
    assert (np.diff(forecast.quantiles, axis=2) >= 0).all()


def _noisy(steps: int, series: int = 1, seed: int = 5) -> Floats:
    rng = np.random.default_rng(seed)
    wave = 50 + 20 * np.sin(2 * np.pi * np.arange(steps) / SEASON)
    return wave + rng.normal(0, 5, (series, steps))


def _late(histories: list[Floats]) -> Floats:
    """Histories of different lengths as rows that end together."""
    longest = max(map(len, histories))
    return np.array([np.concatenate([np.full(longest - len(each), np.nan), each]) for each in histories])


@every
def test_short_histories(name: str) -> None:
    histories = [_noisy(steps)[0] for steps in (1, 2, 3, 5, 8, 13)]
    forecast = _of(name, _late(histories))
    assert (forecast.mean >= 0).all()
    for row, history in enumerate(histories):
        assert (forecast.mean[row] <= 4 * history.max()).all()


@every
def test_one_observation_is_forecast_to_stay(name: str) -> None:
    forecast = _of(name, [7.0], horizon=9)
    assert forecast.mean.tolist() == [[7.0] * 9]
    assert (forecast.at(0.05) < 7).all()
    assert (forecast.at(0.95) > 7).all()


@every
def test_constant_series_and_all_zeros(name: str) -> None:
    values = np.array([0.0, 1.0, 1e-12, 12_345.678, 1e12])
    forecast = _of(name, np.repeat(values[:, None], 60, axis=1), horizon=7)
    for row, value in enumerate(values):
        assert forecast.mean[row] == pytest.approx(value, rel=1e-9, abs=1e-300)
        assert forecast.quantiles[row] == pytest.approx(value, rel=1e-6, abs=1e-300)


@every
def test_gaps(name: str) -> None:
    whole = _noisy(120)
    values = whole.copy()
    values[0, np.random.default_rng(1).random(120) < 0.3] = np.nan
    values[0, 60:75] = np.nan
    values[0, -SEASON:] = whole[0, -SEASON:]
    with_gaps, without = _of(name, values), _of(name, whole)
    assert np.abs(with_gaps.mean - without.mean).max() < 30
    ends_in_gaps = values.copy()
    ends_in_gaps[0, -40:] = np.nan
    forecast = _of(name, ends_in_gaps)
    assert (forecast.mean > 5).all()
    assert (forecast.mean < 110).all()


@every
def test_a_series_that_begins_late(name: str) -> None:
    values = _noisy(60)
    late = np.concatenate([np.full((1, 24), np.nan), values], axis=1)
    assert np.abs(_of(name, late).mean - _of(name, values).mean).max() < 30


@every
def test_a_series_that_was_never_observed_has_no_forecast(name: str) -> None:
    forecaster = _started(name, 2)
    forecaster.update(np.stack([np.full(30, np.nan), np.full(30, 3.0)]))
    forecast = forecaster.forecast(3)
    assert np.isnan(forecast.mean[0]).all()
    assert forecast.mean[1] == pytest.approx(3.0)
    assert np.isnan(_started(name, 1).forecast(2).mean).all()


@every
def test_a_step_of_100x(name: str) -> None:
    after = (3, 8, 40)
    steps = [np.concatenate([_noisy(80)[0], 100 * _noisy(each, seed=9)[0]]) / 10 for each in after]
    forecast = _of(name, _late(steps))
    assert (forecast.mean < 4_000).all()
    assert (forecast.mean[1:] > 50).all()
    assert (forecast.mean[1:] < 2_000).all()


@every
def test_a_fall_to_a_hundredth_and_to_nothing(name: str) -> None:
    falls = [(after, share) for after in (3, 8, 40) for share in (0.01, 0.0)]
    forecast = _of(name, _late([np.concatenate([_noisy(80)[0], share * _noisy(n, seed=9)[0]]) for n, share in falls]))
    assert (forecast.mean >= 0).all()
    assert (forecast.mean < 110).all()
    assert (forecast.mean[4:] < 15).all()


@every
def test_one_outlier_of_100x_is_forgotten(name: str) -> None:
    values = _noisy(100)
    values[0, 70] *= 100
    assert (_of(name, values).mean < 300).all()


@every
def test_nothing_is_negative_unless_allowed(name: str) -> None:
    falling = np.maximum(100.0 - 5 * np.arange(20), 0)
    forecast = _of(name, falling)
    assert (forecast.mean >= 0).all()
    assert (forecast.quantiles >= 0).all()
    below = _of(name, -_noisy(60), non_negative=False)
    assert (below.mean < 0).all()


@every
def test_what_is_no_number_is_a_gap(name: str) -> None:
    values = _noisy(60)
    gaps, odd = values.copy(), values.copy()
    gaps[0, [20, 30, 40]] = np.nan
    odd[0, [20, 30, 40]] = np.inf, -np.inf, 1e250
    assert (_of(name, gaps).mean == _of(name, odd).mean).all()


@every
def test_alone_and_among_many_it_is_the_same(name: str) -> None:
    rng = np.random.default_rng(3)
    many = np.concatenate([_noisy(64, 5), np.zeros((1, 64)), rng.exponential(3.0, (4, 64)), 1e6 * _noisy(64, 1, 8)])
    many[2, 30:40] = np.nan
    many[4, 55:] *= 100
    together = _of(name, many)
    for row in (1, 2, 4, 5, 6, 10):
        forecast = _of(name, many[row])
        assert forecast.mean[0] == pytest.approx(together.mean[row], rel=1e-9, abs=1e-12)
        assert forecast.quantiles[0] == pytest.approx(together.quantiles[row], rel=1e-9, abs=1e-12)


@every
def test_in_pieces_and_at_once_it_is_the_same(name: str) -> None:
    values = _noisy(70, 3)
    values[1, 30:35] = np.nan
    values[2, 50:] *= 100
    at_once, pieces = _started(name, 3), _started(name, 3)
    at_once.update(values)
    pieces.update(values[:, :1])
    pieces.update(values[:, 1:40])
    pieces.forecast(HORIZON)  # asking changes nothing
    for column in values[:, 40:60].T:
        pieces.update(column)
    pieces.update(values[:, 60:60])
    pieces.update(values[:, 60:])
    one, other = at_once.forecast(HORIZON), pieces.forecast(HORIZON)
    assert (one.mean == other.mean).all()
    assert (one.quantiles == other.quantiles).all()


@every
def test_scale_makes_no_difference(name: str) -> None:
    values = _noisy(60)
    forecast = _of(name, np.concatenate([values, 1024 * values]))
    assert forecast.mean[1] == pytest.approx(1024 * forecast.mean[0], rel=1e-6)


@every
def test_farther_than_it_watches_it_is_less_sure(name: str) -> None:
    forecast = _of(name, _noisy(60), horizon=3 * HORIZON)
    width = (forecast.at(0.95) - forecast.at(0.05))[0]
    below = forecast.at(0.05)[0] == 0
    assert below.any() or width[-1] >= width[HORIZON - 1] * 0.99


@every
def test_wrong_shapes_are_told(name: str) -> None:
    forecaster = _started(name, 3)
    with pytest.raises(ValueError, match="expected series × steps"):
        forecaster.update(np.zeros((2, 5)))
    with pytest.raises(BadValue, match="0 steps"):
        forecaster.forecast(0)


@every
@settings(max_examples=6, deadline=None)
@given(
    values=arrays(
        np.float64,
        st.tuples(st.integers(1, 3), st.integers(1, 24)),
        elements=st.one_of(st.floats(0, 1e9), st.just(float("nan")), st.just(0.0), st.just(5.0)),
    )
)
def test_whatever_comes_the_forecast_is_finite_and_within_reason(name: str, values: Floats) -> None:
    forecaster = _started(name, len(values))
    forecaster.update(values)
    forecast = forecaster.forecast(HORIZON)
    seen = ~np.isnan(values).all(axis=1)
    assert np.isfinite(forecast.mean[seen]).all()
    assert np.isfinite(forecast.quantiles[seen]).all()
    assert (forecast.mean[seen] >= 0).all()
    largest = np.nanmax(values[seen], axis=1) if seen.any() else np.zeros(0)
    assert (forecast.mean[seen].max(axis=1) <= 20 * largest + 1e-9).all()
    assert (np.diff(forecast.quantiles[seen], axis=2) >= 0).all()


def test_they_all_answer_the_protocol() -> None:
    forecasters: list[Forecaster] = [_started(name, 2) for name in NAMES]
    forecasters.append(Oracle().start(np.ones((2, 9))))
    for each in forecasters:
        assert each.name
        assert each.series == 2


def test_recipes_say_what_is_wrong_with_their_settings() -> None:
    with pytest.raises(BadValue, match="unknown forecaster 'hol'"):
        recipe_of("hol")
    with pytest.raises(BadValue, match="needs a season"):
        recipe_of("holt-winters")
    with pytest.raises(BadValue, match="0 series"):
        start(recipe_of("naive"), 0)
    with pytest.raises(BadValue, match="levels of quantiles"):
        Settings(levels=(0.9, 0.1))
    with pytest.raises(BadValue, match="horizon"):
        Settings(horizon=0)
