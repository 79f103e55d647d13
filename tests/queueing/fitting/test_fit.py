"""Fitting: what was put into made-up measurements comes out again, with intervals that hold it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import BadValue
from headgate.queueing.fitting.correction import Correction
from headgate.queueing.fitting.estimate import count_rate, mean_of, ratio_of, scv_of, without_outliers
from headgate.queueing.fitting.fit import NotMeasured, fit_network
from headgate.queueing.fitting.observation import ObservationWindow, OperatorWindow
from headgate.queueing.fitting.smoothing import AlphaWeighted, MovingMean, weighted
from headgate.queueing.network import Operator


def window(seed: int, rate: float = 20.0, slow: float = 1.0, seconds: float = 60.0) -> ObservationWindow:
    """A window of a source that sends on a third of its tuples twice."""
    rng = np.random.default_rng(seed)
    gaps = rng.gamma(2.0, 1 / rate / 2.0, int(rate * seconds))
    served = len(gaps)
    sent = int(2 * rng.binomial(served, 1 / 3))
    read = OperatorWindow(
        "read",
        served,
        served,
        tuple(rng.gamma(2.0, slow * 0.02 / 2.0, 400)),
        tuple(gaps[:400]),
        sent=(("keep", sent),),
    )
    keep = OperatorWindow("keep", sent, service_s=tuple(rng.exponential(0.05, 400)))
    return ObservationWindow(seconds, (read, keep), tuple(rng.exponential(0.3, 100)))


def test_rates_service_and_routes_come_out_as_they_went_in() -> None:
    fitted = fit_network([window(seed) for seed in range(6)], MovingMean(6))
    read, keep = fitted.network.operators
    assert read.arrival_rate_per_s == pytest.approx(20, rel=0.02)
    assert (1 / read.service_rate_per_s, read.service_scv) == pytest.approx((0.02, 0.5), rel=0.1)
    assert (1 / keep.service_rate_per_s, keep.service_scv) == pytest.approx((0.05, 1.0), rel=0.1)
    assert read.arrival_scv == pytest.approx(0.5, rel=0.15)
    assert fitted.network.routes[0].mean == pytest.approx(2 / 3, rel=0.05)
    assert fitted.sojourn_s is not None
    assert fitted.sojourn_s.value == pytest.approx(0.3, rel=0.15)
    assert fitted.spread < 0.1
    assert fitted.spread < fit_network([window(0, seconds=5.0)]).spread


@pytest.mark.parametrize("smoothing", [AlphaWeighted(0.5), MovingMean(3)])
def test_a_change_is_followed_and_the_past_forgotten(smoothing: AlphaWeighted | MovingMean) -> None:
    windows = [window(seed) for seed in range(6)] + [window(seed, rate=60.0, slow=2.0) for seed in range(6)]
    read = fit_network(windows, smoothing).network.operators[0]
    assert read.arrival_rate_per_s == pytest.approx(60, rel=0.05)
    assert 1 / read.service_rate_per_s == pytest.approx(0.04, rel=0.1)
    halfway = fit_network(windows[:7], smoothing).network.operators[0].arrival_rate_per_s
    assert 25 < halfway < 55


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.floats(0, 0.99))
def test_alpha_weighting_is_the_recursion_of_the_paper(values: list[float], alpha: float) -> None:
    smoothed = values[0]
    for value in values[1:]:
        smoothed = alpha * smoothed + (1 - alpha) * value
    assert weighted(AlphaWeighted(alpha), values) == pytest.approx(smoothed, abs=1e-9)
    assert weighted(MovingMean(3), values) == pytest.approx(float(np.mean(values[-3:])), abs=1e-9)


def test_a_pause_of_the_machine_does_not_count_as_service() -> None:
    calm = window(1)
    read = replace(calm.operators[0], service_s=(*calm.operators[0].service_s, 30.0, 45.0))
    fitted = fit_network([ObservationWindow(60.0, (read, calm.operators[1]))])
    assert fitted.operators[0].outliers == 2
    assert fitted.operators[0].service_s.value == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("draw", ["exponential", "lognormal"])
def test_skewed_samples_lose_next_to_nothing_as_outliers(draw: str) -> None:
    values = getattr(np.random.default_rng(1), draw)(size=5_000)
    assert len(without_outliers(values.tolist())) > 4_960


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(2)
    held = {"mean": 0, "scv": 0, "rate": 0, "ratio": 0}
    for _ in range(300):
        sample = rng.gamma(2.0, 0.5, 300).tolist()
        held["mean"] += mean_of(sample).low <= 1.0 <= mean_of(sample).high
        held["scv"] += scv_of(sample).low <= 0.5 <= scv_of(sample).high
        rate = count_rate(float(rng.poisson(200)), 10.0)
        held["rate"] += rate.low <= 20 <= rate.high
        ratio = ratio_of(float(rng.binomial(500, 0.3)), 500)
        held["ratio"] += ratio.low <= 0.3 <= ratio.high
    assert all(0.87 * 300 <= count <= 0.99 * 300 for count in held.values()), held


def test_limits_and_prices_are_kept() -> None:
    limits = {"read": Operator("read", 1.0, processors_min=2, processors_max=5, price=3.0)}
    read, keep = fit_network([window(1)], limits=limits).network.operators
    assert (read.processors_min, read.processors_max, read.price) == (2, 5, 3.0)
    assert keep.processors_max is None


def test_too_little_is_not_yet_and_not_wrong() -> None:
    with pytest.raises(NotMeasured, match="no window"):
        fit_network([])
    idle = ObservationWindow(10.0, (OperatorWindow("read", 5, 5),))
    with pytest.raises(NotMeasured, match="served 5 tuples and no service time was sampled"):
        fit_network([idle])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ObservationWindow(0.0, ()),
        lambda: ObservationWindow(float("nan"), ()),
        lambda: OperatorWindow("a", -1),
        lambda: OperatorWindow("a", 1, service_s=(float("nan"),)),
        lambda: OperatorWindow("a", 1, service_s=(-0.1,)),
        lambda: AlphaWeighted(1.0),
        lambda: MovingMean(0),
    ],
)
def test_nonsense_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(BadValue):
        make()


@given(st.lists(st.floats(0.2, 5), min_size=30, max_size=30))
def test_a_model_that_errs_by_a_factor_is_put_right(noise: list[float]) -> None:
    learnt = Correction()
    for place in range(60):
        learnt = learnt.learn(1.0, 2.5)
        if place < 30:
            learnt = learnt.learn(1.0, 2.5 * noise[place])
    assert learnt.factor == pytest.approx(2.5, rel=0.01)


def test_a_measurement_that_tells_nothing_leaves_the_correction_as_it_was() -> None:
    learnt = Correction().learn(1.0, 2.0)
    assert learnt.learn(float("inf"), 1.0) == learnt
    assert learnt.learn(1.0, 0.0) == learnt
