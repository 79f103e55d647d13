"""Time within the service level: it adds up, outlives the engine, takes no more room, and begins anew each month."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headgate.model.cluster.observation import DataflowObservation, Figures, Observation
from headgate.model.level_time import DAY_S, LevelStatus, LevelTime, month_of
from headgate.model.service_level import ServiceLevel
from headgate.runtime.engine.level_times import LevelTimes

NOTHING = Figures(None, None, None, None, None, None, None)


def seen(ended: float, **within: bool | None) -> Observation:
    flows = (
        DataflowObservation(name, "o", ServiceLevel(), figures=replace(NOTHING, within=each))
        for name, each in within.items()
    )
    return Observation(ended, 60.0, dataflows=tuple(flows))


@given(st.lists(st.tuples(st.integers(1, 100), st.sampled_from([True, False, None])), max_size=60), st.integers(0, 400))
def test_every_second_is_in_one_of_three_sums(intervals: list[tuple[int, bool | None]], day: int) -> None:
    time, now = LevelTime(), day * DAY_S
    by_month: dict[str, float] = {}
    for seconds, within in intervals:
        now += seconds * 1_000
        time = time.after(now, seconds * 1_000, within)
        by_month[month_of(now)] = by_month.get(month_of(now), 0.0) + (seconds * 1_000 if within is False else 0)
    for name, wanted in (("within_s", True), ("outside_s", False), ("unknown_s", None)):
        assert getattr(time, name) == sum(seconds * 1_000 for seconds, within in intervals if within is wanted)
    status = LevelStatus.of(ServiceLevel(time_within_min=0.9), time, now)
    assert status.budget_s - status.budget_left_s == by_month.get(month_of(now), 0.0)
    known = sum(seconds for seconds, within in intervals if within is not None)
    good = sum(seconds for seconds, within in intervals if within)
    assert status.share == (good / known if known else None)


def test_times_outlive_the_engine_and_end_with_the_dataflow(tmp_path: Path) -> None:
    times = LevelTimes(tmp_path)
    times.add(seen(100.0, a=True, b=False), 5.0)
    times.add(seen(105.0, a=True, b=None), 5.0)
    size = (tmp_path / "level_times.json").stat().st_size
    for number in range(1_000):
        times.add(seen(110.0 + number * 5, a=True, b=True), 5.0)
    again = LevelTimes(tmp_path)
    assert (again.of["a"].within_s, again.of["b"].outside_s, again.of["b"].unknown_s) == (5_010.0, 5.0, 5.0)
    assert (tmp_path / "level_times.json").stat().st_size < size + 20, "it does not grow"
    paused = replace(seen(6_000.0, a=False), dataflows=(replace(seen(1, a=False).dataflows[0], paused=True),))
    again.add(paused, 5.0)
    assert LevelTimes(tmp_path).of == {"a": replace(times.of["a"])}, "paused time counts for nothing; b is gone"
