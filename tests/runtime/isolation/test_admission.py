"""A fragment that floods is cut to the length of its trigger, and one that keeps up is left alone."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from headgate.runtime.isolation.admission import FEWEST_ROWS, Admission
from headgate.runtime.isolation.watchdog import Allowance


def played(
    rate_per_s: float, fixed_s: float, per_row_s: float, trigger_s: float, epochs: int, noise: float = 0.0
) -> tuple[list[tuple[int, float]], Admission]:
    """Epochs of a source that brings rows at a rate, as long as they are admitted."""
    admission, waiting = Admission(trigger_s), 0.0
    done: list[tuple[int, float]] = []
    draw = random.Random(7)
    for _ in range(epochs):
        waiting += rate_per_s * (max(trigger_s, done[-1][1]) if done else trigger_s)
        rows = int(min(waiting, admission.limit or 10**9))
        waiting -= rows
        seconds = (fixed_s + per_row_s * rows) * draw.uniform(1 - noise, 1 + noise)
        done.append((rows, seconds))
        admission.epoch(rows, seconds)
    return done, admission


@given(st.floats(10, 5_000), st.floats(0.01, 0.2), st.sampled_from([0.5, 1.0, 2.0]))
def test_who_keeps_up_is_never_held_back(rate_per_s: float, fixed_s: float, trigger_s: float) -> None:
    per_row_s = 0.5 * trigger_s / (rate_per_s * trigger_s)
    done, admission = played(rate_per_s, fixed_s * trigger_s, per_row_s, trigger_s, 50)
    assert admission.limit is None
    assert all(rows <= rate_per_s * trigger_s + 1 for rows, _ in done), "nothing ever waited"


@given(st.floats(0.01, 0.25), st.sampled_from([0.5, 1.0, 2.0]), st.floats(2, 200), st.floats(0, 0.2))
def test_a_flood_is_cut_to_about_a_trigger(fixed: float, trigger_s: float, times: float, noise: float) -> None:
    fixed_s, per_row_s = fixed * trigger_s, 1e-5
    capacity_per_s = (trigger_s - fixed_s) / per_row_s / trigger_s
    done, admission = played(capacity_per_s * times, fixed_s, per_row_s, trigger_s, 80, noise)
    assert admission.limit is not None
    last = [seconds for _, seconds in done[-20:]]
    assert sum(last) / len(last) <= 1.25 * trigger_s
    rows_per_s = sum(rows for rows, _ in done[-20:]) / sum(last)
    assert rows_per_s >= 0.3 * capacity_per_s, "held back, and not brought to a stop"


@given(st.floats(1.2, 10.0), st.sampled_from([0.5, 1.0]), st.floats(0, 0.2))
def test_few_rows_that_take_long_are_cut_too(times: float, trigger_s: float, noise: float) -> None:
    """A service that answers 300 times a second: a first limit made for rows of microseconds would never be full."""
    done, admission = played(300.0 * times, 0.1, 1 / 300, trigger_s, 80, noise)
    assert admission.limit is not None
    last = [seconds for _, seconds in done[-20:]]
    assert sum(last) / len(last) <= 1.5 * trigger_s


@given(st.floats(1.0, 10.0), st.floats(200, 20_000))
def test_where_rows_are_not_what_takes_long_they_are_admitted(fixed_s: float, rate_per_s: float) -> None:
    done, _ = played(rate_per_s, fixed_s, 1e-6, 0.5, 80)
    admitted = sum(rows for rows, _ in done[-20:]) / sum(max(seconds, 0.5) for _, seconds in done[-20:])
    assert admitted >= min(0.9 * rate_per_s, FEWEST_ROWS), "it keeps up with its source"


@given(st.floats(0.5, 4.0), st.floats(0, 0.1))
def test_a_fragment_at_the_smallest_limit_does_not_stay_there(fixed_s: float, noise: float) -> None:
    """After a cold start of a minute it has the smallest limit; what takes long is fixed, and 20,000 rows wait."""
    admission, draw, done = Admission(2.0, limit=FEWEST_ROWS), random.Random(7), []
    for seconds in (60.0, 15.0, 9.0):
        admission.epoch(FEWEST_ROWS, seconds)
    for _ in range(60):
        rows = admission.limit or 20_000
        seconds = (fixed_s + 0.0035 * rows) * draw.uniform(1 - noise, 1 + noise)
        done.append((rows, seconds))
        admission.epoch(rows, seconds)
    rows_per_s = sum(rows for rows, _ in done[-20:]) / sum(seconds for _, seconds in done[-20:])
    epoch_s = max(2.0, 2 * fixed_s)
    possible = (epoch_s - fixed_s) / 0.0035 / epoch_s
    assert rows_per_s >= 0.6 * possible


def test_a_limit_is_lifted_when_the_flood_is_over() -> None:
    admission = Admission(0.5)
    for rows, seconds in [(10, 1.0)] * 3 + [(20_000, 3.0)]:
        admission.epoch(rows, seconds)
    assert admission.limit is not None
    for _ in range(30):
        admission.epoch(50, 0.2)
    assert admission.limit is None


def test_the_watchdog_waits_longer_when_all_take_longer() -> None:
    allowance = Allowance()
    assert allowance.limit_s(1.0) > 10, "a cold start is nobody's fault"
    for _ in range(20):
        allowance.note(0.2)
    quick = allowance.limit_s(1.0)
    for _ in range(20):
        allowance.note(2.0)
    assert 1.0 < quick < 3.0 < allowance.limit_s(1.0) < 12.0
