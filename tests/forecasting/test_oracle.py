"""The paper's oracle errs as much as its settings say."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.errors import BadValue
from headgate.forecasting.oracle import Oracle


def test_a_perfect_oracle() -> None:
    truth = np.random.default_rng(1).uniform(1, 9, (4, 30))
    knows = Oracle().start(truth)
    knows.update(truth[:, :10])
    forecast = knows.forecast(6)
    assert (forecast.mean == truth[:, 10:16]).all()
    assert (forecast.quantiles == truth[:, 10:16, None]).all()


@pytest.mark.parametrize(("reading", "last"), [("variance", np.sqrt(0.1)), ("deviation", 0.1)])
def test_errors_grow_to_twice_the_mean(reading: str, last: float) -> None:
    truth = np.full((20_000, 12), 50.0)
    errs = Oracle(error=0.1, reading=reading)  # type: ignore[arg-type]
    knows = errs.start(truth)
    knows.update(truth[:, :1])
    deviations = errs.deviations(8)
    assert deviations[-1] == pytest.approx(last)
    off = knows.forecast(8).mean / 50 - 1
    if reading == "deviation":  # the other reading reaches below -1, where a rate ends
        assert off.std(axis=0) == pytest.approx(deviations, rel=0.03)
    assert np.abs(np.median(off, axis=0)).max() < 0.01
    assert np.quantile(off, 0.84, axis=0) == pytest.approx(deviations, rel=0.05)


def test_bias_is_added() -> None:
    truth = np.full((2_000, 9), 50.0)
    for bias in (-0.05, 0.05):
        knows = Oracle(error=0.05, bias=bias, reading="deviation").start(truth)
        assert knows.forecast(4).mean.mean() == pytest.approx(50 * (1 + bias), rel=0.005)


def test_asked_twice_it_says_the_same_and_later_something_else() -> None:
    truth = np.full((3, 30), 50.0)
    one, other = Oracle(error=0.2, seed=7).start(truth), Oracle(error=0.2, seed=7).start(truth)
    one.forecast(3)
    for _ in range(5):
        one.update(truth[:, :1])
    other.update(truth[:, :5])
    assert (one.forecast(6).mean == other.forecast(6).mean).all()
    other.update(truth[:, 5:6])
    assert (one.forecast(6).mean != other.forecast(6).mean).any()
    assert (one.forecast(6).mean != Oracle(error=0.2, seed=8).start(truth).forecast(6).mean).any()


def test_past_the_end_it_repeats_and_nothing_is_negative() -> None:
    knows = Oracle(error=1.0).start([[1.0, 2.0, 3.0]] * 500)
    knows.update(np.zeros((500, 2)))
    forecast = knows.forecast(5)
    assert (forecast.mean >= 0).all()
    assert (forecast.quantiles >= 0).all()
    assert (Oracle().start([[1.0, 2.0]]).forecast(4).mean == [[1.0, 2.0, 2.0, 2.0]]).all()


def test_what_cannot_be_is_refused() -> None:
    for make in (lambda: Oracle(error=-1), lambda: Oracle(bias=2), lambda: Oracle().start([1.0, 2.0])):
        with pytest.raises(BadValue):
            make()
    with pytest.raises(BadValue, match="reading"):
        Oracle(reading="nonsense")  # type: ignore[arg-type]
