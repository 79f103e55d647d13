"""A forecaster that fails or talks nonsense is noticed, told, and replaced; a sane one is left alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from headgate.forecasting.forecast import LEVELS, Forecast
from headgate.forecasting.guard import FROZEN, Guarded, Wrong
from headgate.forecasting.holt import Holt
from headgate.forecasting.methods import METHODS, recipe_of
from headgate.forecasting.online import Settings, start

Floats = npt.NDArray[np.float64]
SERIES = 3


class FakeForecaster:
    """Says what it is told to say."""

    name = "fake"
    series = SERIES

    def __init__(self, say: Callable[[int], Forecast], fails_at: int = -1) -> None:
        self.say = say
        self.fails_at = fails_at
        self.updates = 0

    def update(self, observations: npt.ArrayLike) -> None:
        self.updates += 1
        if self.updates == self.fails_at:
            raise RuntimeError("no more of this")

    def forecast(self, horizon: int) -> Forecast:
        return self.say(horizon)


def _flat(mean: float, horizon: int) -> Forecast:
    means = np.full((SERIES, horizon), mean)
    return Forecast(means, np.repeat(means[:, :, None], len(LEVELS), axis=2))


def _with(row: int, value: float) -> Callable[[int], Forecast]:
    def say(horizon: int) -> Forecast:
        forecast = _flat(10.0, horizon)
        forecast.mean[row] = value
        forecast.quantiles[row] = value
        return forecast

    return say


def _crossed(horizon: int) -> Forecast:
    forecast = _flat(10.0, horizon)
    forecast.quantiles[1] = np.linspace(12, 8, len(LEVELS))
    return forecast


def _asked(say: Callable[[int], Forecast]) -> tuple[Guarded, Forecast]:
    guarded = Guarded(lambda: FakeForecaster(say))
    guarded.update([[9.0, 10.0], [19.0, 20.0], [29.0, 30.0]])
    return guarded, guarded.forecast(2)


@pytest.mark.parametrize(
    ("say", "wrong"),
    [
        (_with(1, float("nan")), Wrong.NOT_A_NUMBER),
        (_with(1, float("inf")), Wrong.NOT_A_NUMBER),
        (_with(1, -0.1), Wrong.NEGATIVE),
        (_with(1, 1e5), Wrong.ABSURD),
        (_crossed, Wrong.CROSSED),
    ],
)
def test_nonsense_about_one_series_leaves_the_others_alone(say: Callable[[int], Forecast], wrong: Wrong) -> None:
    guarded, forecast = _asked(say)
    assert guarded.failing.tolist() == [False, True, False]
    assert forecast.mean.tolist() == [[10.0, 10.0], [20.0, 20.0], [10.0, 10.0]]
    assert np.isfinite(forecast.quantiles).all()
    (complaint,) = guarded.complaints
    assert (complaint.wrong, complaint.series, complaint.step) == (wrong, (1,), 2)
    message = complaint.sentence(["a", "b", "c"])
    assert message.startswith("after step 2 the forecast of 'fake' for 'b' ")
    assert message.endswith("; the last value is used instead")


def test_what_goes_on_is_told_once_and_what_comes_back_again() -> None:
    say = [_with(0, float("nan"))]
    guarded = Guarded(lambda: FakeForecaster(lambda horizon: say[0](horizon)))
    for step in range(4):
        guarded.update([float(step + 1)] * SERIES)
        guarded.forecast(2)
    assert len(guarded.complaints) == 1
    say[0] = _with(0, 11.0)
    guarded.update([5.0] * SERIES)
    assert guarded.forecast(2).mean[0].tolist() == [11.0, 11.0]
    assert not guarded.failing.any()
    say[0] = _with(0, float("nan"))
    guarded.update([6.0] * SERIES)
    guarded.forecast(2)
    assert [each.step for each in guarded.complaints] == [1, 6]


def test_a_wrong_shape() -> None:
    guarded, forecast = _asked(lambda horizon: _flat(10.0, horizon + 1))
    assert guarded.failing.all()
    assert forecast.mean[:, 0].tolist() == [10.0, 20.0, 30.0]
    assert guarded.complaints[0].wrong is Wrong.SHAPE


def test_a_forecast_that_raises() -> None:
    def say(horizon: int) -> Forecast:
        raise ZeroDivisionError("by nought")

    guarded, forecast = _asked(say)
    assert guarded.failing.all()
    assert forecast.mean[:, 0].tolist() == [10.0, 20.0, 30.0]
    assert guarded.complaints[0].sentence() == (
        "after step 2 forecaster 'fake' raised ZeroDivisionError: by nought; the last value is used instead"
    )


def test_an_update_that_raises_begins_anew_with_what_was_seen() -> None:
    class Fragile:
        """Holt, but the first one breaks at its tenth update."""

        made = 0

        def __init__(self) -> None:
            Fragile.made += 1
            self.inner = start(Holt(), SERIES)
            self.name, self.series = "fragile", SERIES
            self.left = 10 if Fragile.made == 1 else 10**6

        def update(self, observations: npt.ArrayLike) -> None:
            self.left -= 1
            if self.left == 0:
                raise FloatingPointError("overflow")
            self.inner.update(observations)

        def forecast(self, horizon: int) -> Forecast:
            return self.inner.forecast(horizon)

    guarded, sound = Guarded(Fragile), start(Holt(), SERIES)
    for step in range(14):
        column = np.array([step, 2.0 * step, 50.0 - step])
        guarded.update(column)
        sound.update(column)
        result = guarded.forecast(3)
        assert np.isfinite(result.mean).all()
        if step == 9:
            assert guarded.failing.all()
        else:
            assert not guarded.failing.any()
            assert result.mean == pytest.approx(sound.forecast(3).mean)
    assert [each.wrong for each in guarded.complaints] == [Wrong.RAISED]


def test_a_frozen_forecaster() -> None:
    guarded = Guarded(lambda: FakeForecaster(lambda horizon: _flat(10.0, horizon)))
    for step in range(FROZEN + 3):
        guarded.update([1.0 + step % 7, 1.0 + step, 5.0])
        guarded.forecast(2)
    # The third series stands still, and so may its forecast.
    assert guarded.failing.tolist() == [True, True, False]
    (complaint,) = guarded.complaints
    assert complaint.wrong is Wrong.FROZEN
    assert complaint.series == (0, 1)


@pytest.mark.parametrize("name", METHODS)
def test_sane_forecasters_are_never_complained_about(name: str) -> None:
    rng = np.random.default_rng(31)
    season = 8
    wave = 40 + 30 * np.sin(2 * np.pi * np.arange(90) / season)
    jumps = np.where(np.arange(90) > 50, 300.0, 3.0)
    values = np.stack([wave + rng.normal(0, 3, 90), rng.exponential(5, 90), np.zeros(90), np.full(90, 4.0), jumps])
    values[1, 30:40] = np.nan
    late = np.where(np.arange(90) < 60, np.nan, 7.0 + rng.normal(0, 1, 90))
    values = np.concatenate([values, late[None, :]])
    settings = Settings(horizon=4)
    guarded = Guarded(lambda: start(recipe_of(name, season), len(values), settings), settings)
    for column in values.T:
        guarded.update(column)
        guarded.forecast(4)
    assert [each.sentence() for each in guarded.complaints] == []


def test_observations_of_a_wrong_shape_are_the_callers_fault() -> None:
    guarded = Guarded(lambda: start(Holt(), 2))
    with pytest.raises(ValueError, match="expected series × steps"):
        guarded.update(np.zeros((3, 3)))
