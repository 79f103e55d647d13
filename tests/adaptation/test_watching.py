"""What is expected of machines: by what they did, as far as differences last."""

from __future__ import annotations

import numpy as np

from headgate.adaptation.speed_estimates import SpeedEstimates


def _seen(watch: SpeedEstimates, shares: np.ndarray) -> None:
    for step in shares.T:
        watch.see((f"vm-{place}", float(each)) for place, each in enumerate(step))


def test_where_neighbours_come_and_go_nothing_lasts() -> None:
    watch = SpeedEstimates(hour=12)
    _seen(watch, np.random.default_rng(1).uniform(0.4, 1.0, (30, 144)))
    assert watch.lasts < 0.2
    assert all(abs(watch.expected(f"vm-{place}") - watch.usual) < 0.05 for place in range(30))


def test_where_machines_differ_for_good_the_difference_lasts() -> None:
    rng = np.random.default_rng(2)
    level = rng.uniform(0.5, 0.9, 30)
    watch = SpeedEstimates(hour=12)
    _seen(watch, np.clip(level[:, None] + rng.normal(0.0, 0.05, (30, 144)), 0.05, 1.0))
    assert watch.lasts > 0.8
    expected = np.array([watch.expected(f"vm-{place}") for place in range(30)])
    assert np.abs(expected - level).max() < 0.08


def test_new_machines_are_expected_to_be_as_new_ones_were_not_as_those_that_were_kept() -> None:
    watch = SpeedEstimates(hour=4)
    for turn in range(40):
        kept = [("best", 1.0)]
        # Of those that come, none is as good, and none is kept.
        watch.see([*kept, (f"tried-{turn // 4}", 0.5)])
    assert watch.usual < 0.6
    assert watch.expected("best") > 0.9
    assert watch.expected("never seen") == watch.usual


def test_before_anything_was_seen_machines_do_what_they_are_rated_for() -> None:
    watch = SpeedEstimates(hour=12)
    assert watch.usual == watch.expected("vm-1") == 1.0
    watch.see([])
    assert watch.usual == 1.0
