"""Profiling rests between its steps, unless it may take all the time or the engine ends."""

from __future__ import annotations

import threading
import time

import pytest

from headgate.runtime.observing.measuring import Pace

STEP_S, STEPS, SLACK_S = 0.02, 3, 0.2


def paced(pace: Pace) -> tuple[float, float]:
    """Seconds that some steps took with their rests, and how many of them were noted as busy."""
    began = time.monotonic()
    pace.begin()
    for _ in range(STEPS):
        time.sleep(STEP_S)
        assert pace.goes_on
        pace.step()
    busy_s = pace.end()
    assert not pace.goes_on
    return time.monotonic() - began, busy_s


@pytest.mark.parametrize(("share", "rests"), [(0.005, 3), (0.5, 1), (4.0, 0)])
def test_rests_are_in_proportion_and_do_not_count(share: float, rests: int) -> None:
    whole_s, busy_s = paced(Pace(share, threading.Event()))
    assert busy_s >= STEPS * STEP_S
    assert 0.8 * (1 + rests) * busy_s <= whole_s <= 1.2 * (1 + rests) * busy_s + SLACK_S


def test_an_engine_that_ends_does_not_wait_for_rests() -> None:
    ended = threading.Event()
    ended.set()
    whole_s, busy_s = paced(Pace(0.005, ended))
    assert whole_s <= 1.2 * busy_s + SLACK_S
