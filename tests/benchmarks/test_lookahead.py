"""What looking ahead is measured on, that its figures are there, and that its pictures can be drawn."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from headgate_benchmarks.lookahead import recorded as lookahead_recorded
from headgate_benchmarks.lookahead.benchmark import LOOKAHEAD
from headgate_benchmarks.lookahead.trials import Sizes, on_worlds
from headgate_benchmarks.lookahead.workloads import DAY, Workload, paper, realistic
from headgate_benchmarks.study import Conclusion, Row, Study


def test_workloads_are_worlds_of_twelve_hours_with_a_past() -> None:
    worlds = [paper(1), *realistic(1)]
    for world in worlds:
        assert world.truth().shape == (len(world.setting.shape().sources), 144)
        assert world.history.shape[0] == world.truth().shape[0]
        assert world.history.shape[1] >= DAY
        assert (world.history >= 0).all()
        level = world.setting.dataflow.service_level
        assert level.break_even_at_best_per_h is not None
    assert len({world.name for world in worlds}) == 5


def test_one_seed_gives_one_workload() -> None:
    for one, same, other in zip(realistic(1), realistic(1), realistic(2), strict=True):
        assert np.array_equal(one.truth(), same.truth())
        assert np.array_equal(one.history, same.history)
        assert not np.array_equal(one.truth(), other.truth())


def test_the_past_goes_on_in_the_present() -> None:
    """The last hour of the past and the first of the twelve are of one series."""
    for world in realistic(1):
        if world.name == "day":
            before, after = world.history[:, -12:].mean(), world.truth()[:, :12].mean()
            assert before == pytest.approx(after, rel=0.25)


def _shared(folder: Path) -> None:
    """A folder of shared data in small: 21 days of tweets with a hole each night, machines for a day."""
    (folder / "arrival_rates").mkdir(parents=True)
    minutes = np.arange(21 * 1_440)
    tweets = 3_000 + 1_000 * np.sin(minutes / 1_440 * 2 * np.pi)
    valid = minutes % 1_440 < 1_411
    lines = [
        f"{at},{round(each) if there else 0},{int(there)}"
        for at, each, there in zip(minutes, tweets, valid, strict=True)
    ]
    with gzip.open(folder / "arrival_rates" / "twitter_stream_per_minute.csv.gz", "wt") as file:
        file.write("minute,tweets,valid\n" + "\n".join(lines) + "\n")
    seconds = np.where(np.repeat(valid[1_200:1_440], 60), 50, 0)
    with gzip.open(folder / "arrival_rates" / "twitter_stream_per_second_48h.csv.gz", "wt") as file:
        file.write("t_s,tweets\n" + "\n".join(f"{at},{each}" for at, each in enumerate(seconds)) + "\n")
    (folder / "planetlab_cpu").mkdir()
    with gzip.open(folder / "planetlab_cpu" / "planetlab_20110303_200vms.csv.gz", "wt") as file:
        file.write("t_s,vm000,vm001\n" + "\n".join(f"{300 * at},{at % 50},10" for at in range(288)) + "\n")


def test_recorded_worlds_bridge_holes_and_leave_out_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _shared(tmp_path)
    monkeypatch.setenv("HEADGATE_SHARED_DATA", str(tmp_path))
    steps: list[str] = []
    worlds = lookahead_recorded.recorded(1, steps.append)
    assert [world.name for world in worlds] == ["tweets_planetlab", "tweets_planetlab_road"]
    assert len([line for line in steps if "perf_10min" in line]) == 2
    for world in worlds:
        assert world.truth().shape[1] == 144
        assert world.history.shape[1] == 3 * DAY + 72
        # Of a wave from half to one and a half: where holes were left, rates would be 0.
        assert (world.history > 0.6 * world.history.mean(axis=1, keepdims=True)).all()
    by_second = lookahead_recorded._seconds(tmp_path)
    assert len(by_second) == (240 - 29) // 5
    assert by_second.min() == pytest.approx(by_second.max())


def test_findings_of_recorded_worlds_are_counted_world_by_world(monkeypatch: pytest.MonkeyPatch) -> None:
    def trials(world: Workload) -> list[Row]:
        return [{"workload": world.name, "profit": 1.0 if world.name == "rush" else 0.25}]

    def conclude(rows: Sequence[Row]) -> Conclusion:
        profit = sum(row["profit"] for row in rows) / len(rows)
        conclusion = Conclusion({"study_profit": profit})
        conclusion.find("large", profit > 0.5, "profit is large")
        return conclusion

    monkeypatch.setattr(lookahead_recorded, "recorded", lambda seed, _: realistic(seed)[:2])
    measured = on_worlds(Study("study", trials, conclude), 1, lambda _: None, Sizes(seeds=1))
    assert measured.figures["finding_large"] == 0
    assert measured.figures["study_profit"] == 0.25
    assert measured.figures["recorded_study_profit"] == 0.625
    assert measured.figures["recorded_finding_large"] == 1
    assert measured.figures["recorded_worlds_with_large"] == 1
    assert {"study", "recorded_study"} <= set(measured.samples)
    assert measured.samples["study_findings"] == ["NOT reproduced: profit is large"]


@pytest.mark.slow
def test_figures_findings_and_pictures(tmp_path: Path) -> None:
    sizes = Sizes(1, 1, 144, (10, 20, 30), (0.0, 0.2), recorded=False, bound_s=60.0, machines=50, decisions=4)
    assert LOOKAHEAD.whole is not None
    measured = LOOKAHEAD.whole(1, lambda _: None, sizes)
    figures = measured.figures
    assert figures["finding_wpp_worst"] in (0, 1)
    assert figures["horizon_lookahead_omega_20min"] >= 0.8
    assert figures["error_20_profit_30min"] < 1
    assert figures["bias_-5_wpo_profit_0"] < 1
    assert figures["forecast_workloads"] == 4
    assert figures["forecast_beats_caf"] >= 3
    assert LOOKAHEAD.plot is not None
    drawn = LOOKAHEAD.plot(measured, tmp_path / "plots")
    names = ("fig5", "fig6", "fig7", "forecast", "hindsight")
    assert [path.name for path in drawn] == [f"lookahead-{each}.png" for each in names]
    assert all(path.stat().st_size > 10_000 for path in drawn)
