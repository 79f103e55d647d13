"""Rates: limits, means, and that one replication does not depend on another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import BadValue
from headgate.simulation.rates import Bootstrap, Bursts, Constant, RandomWalk, Recorded, Sinusoid, Steps
from tests.simulation.worlds import dataflow, setting

DAY = tuple(float(100 + 50 * np.sin(2 * np.pi * n / 288) + 5 * (n // 288)) for n in range(3 * 288))
ALL: list[Any] = [
    Constant(5.0),
    RandomWalk(100.0),
    Sinusoid(75.0, 2.0),
    Steps(((0.0, 1.0), (600.0, 9.0))),
    Bursts(10.0),
    Recorded(DAY, 300.0),
    Bootstrap(DAY, 300.0),
]


@pytest.mark.parametrize("rate", ALL, ids=lambda rate: type(rate).__name__)
def test_every_rate_is_finite_and_its_first_replications_stay_when_more_follow(rate: Any) -> None:
    few, many = (rate.series(np.random.default_rng(5), count, 144, 300.0) for count in (3, 7))
    assert few.shape == (3, 144)
    assert (few >= 0).all()
    assert np.isfinite(few).all()
    assert np.array_equal(few, many[:3])
    assert rate.peak_per_s >= rate.mean_per_s > 0


@given(st.floats(0.1, 1e4), st.floats(0.05, 1.0), st.sampled_from([30.0, 120.0, 300.0]))
def test_a_walk_stays_within_its_limits(mean: float, spread: float, interval_s: float) -> None:
    walk = RandomWalk(mean, spread).series(np.random.default_rng(1), 4, 100, interval_s)
    assert (walk >= mean * (1 - spread) - 1e-9).all()
    assert (walk <= mean * (1 + spread) * (1 + 1e-12)).all()


def test_a_walk_uses_all_of_its_range_and_moves_in_small_steps() -> None:
    walk = RandomWalk(100.0).series(np.random.default_rng(2), 200, 360, 120.0)
    assert walk.mean() == pytest.approx(100.0, abs=3.0)
    assert np.quantile(walk, 0.05) < 58
    assert np.quantile(walk, 0.95) > 142
    assert np.diff(walk, axis=1).std() == pytest.approx(10.0, rel=0.2)


def test_a_wave_is_where_it_should_be() -> None:
    wave = Sinusoid(75.0, 2.0).series(np.random.default_rng(3), 400, 288, 300.0).mean(axis=0)
    assert wave[0] == pytest.approx(2.0, abs=0.2)
    assert wave[143] == pytest.approx(75.0, abs=1.0)
    assert wave.mean() == pytest.approx(38.5, rel=0.01)
    one = Sinusoid(75.0, 2.0).series(np.random.default_rng(3), 1, 720, 60.0)[0]
    smooth = 2 + 73 * (1 - np.cos(2 * np.pi * (np.arange(720) + 0.5) / 1_440)) / 2
    assert np.abs(one / smooth - 1).max() <= 0.2 + 1e-9
    assert np.abs(one / smooth - 1).max() > 0.15


def test_steps_and_recordings_keep_every_message() -> None:
    steps = Steps(((0.0, 1.0), (90.0, 4.0), (400.0, 0.0))).series(np.random.default_rng(1), 1, 10, 60.0)[0]
    assert steps.sum() * 60.0 == pytest.approx(90 + 310 * 4)
    assert steps[1] == pytest.approx((30 + 30 * 4) / 60)
    recorded = Recorded((2.0, 8.0, 5.0), 100.0, start_s=50.0).series(np.random.default_rng(1), 1, 5, 60.0)[0]
    assert recorded.sum() * 60.0 == pytest.approx(50 * 2 + 100 * 8 + 100 * 5 + 50 * 2)


def test_bursts_come_as_often_and_as_high_as_they_should() -> None:
    rate = Bursts(10.0, factor=5.0, every_s=3_000.0, lasting_s=600.0)
    series = rate.series(np.random.default_rng(4), 300, 200, 60.0)
    assert series.min() >= 10.0 - 1e-9
    assert series.max() <= 50.0 + 1e-9
    # It starts quiet, so the share of bursts is reached a little later.
    assert series[:, 60:].mean() == pytest.approx(rate.mean_per_s, rel=0.08)


def test_a_bootstrap_keeps_the_course_of_the_day_and_mixes_the_days() -> None:
    drawn = Bootstrap(DAY, 300.0, block_s=1_800.0).series(np.random.default_rng(6), 60, 288, 300.0)
    days = np.array(DAY).reshape(3, 288)
    np.testing.assert_allclose(drawn.mean(axis=0), days.mean(axis=0), atol=4.0)
    assert all(min(abs(drawn[0, n] - days[:, n])) < 1e-9 for n in range(288))
    assert len({round(drawn[0, n] - days[0, n]) for n in range(288)}) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(-1.0), "rate_per_s"),
        (lambda: Constant(float("nan")), "rate_per_s"),
        (lambda: RandomWalk(10.0, 1.5), "spread"),
        (lambda: Sinusoid(1.0, 2.0), "peak"),
        (lambda: Steps(((5.0, 1.0),)), "begin at 0"),
        (lambda: Steps(((0.0, 1.0), (9.0, 1.0), (4.0, 2.0))), "order of time"),
        (lambda: Recorded((), 60.0), "without values"),
        (lambda: Recorded((1.0, float("inf")), 60.0), "value 2"),
        (lambda: Bootstrap((1.0,), 0.0), "every_s"),
    ],
)
def test_nonsense_is_told(make: Any, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        make()


@given(st.lists(st.tuples(st.floats(1.0, 1e5), st.floats(0.0, 1e4)), min_size=1, max_size=6))
def test_the_mean_of_steps_is_weighted_by_time(lasting: list[tuple[float, float]]) -> None:
    """Against a sum over spans, and in a setting over its own period: as the rates that the run will see."""
    begins = np.concatenate([[0.0], np.cumsum([span for span, _ in lasting])])
    steps = Steps(tuple((float(at), rate) for at, (_, rate) in zip(begins, lasting, strict=False)))
    mean = sum(span * rate for span, rate in lasting) / float(begins[-1])
    assert steps.mean_until(float(begins[-1])) == pytest.approx(mean, rel=1e-9)
    ran = replace(setting(dataflow({"a": (0.1, 1.0)}), 1.0), rates={"a": steps})
    assert ran.mean_rates()["a"] == pytest.approx(float(ran.external(ran.shape()).mean()), rel=1e-9)


def test_a_short_burst_hardly_counts_in_the_mean_of_steps() -> None:
    assert Steps(((0.0, 10.0), (3_000.0, 1_000.0), (3_001.0, 10.0))).mean_per_s < 11
