"""What looking ahead is measured on, that its figures are there, and that its pictures can be drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headgate.bench import lookahead, lookahead_plots
from headgate.bench.lookahead_workloads import DAY, paper, realistic
from headgate.bench.measured import Measured


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


def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SEEDS", 1), ("FORECAST_SEEDS", 1), ("HORIZONS_MIN", (10, 20, 30)), ("ERRORS", (0.0, 0.2))):
        monkeypatch.setattr(lookahead, name, value)
    monkeypatch.setattr(lookahead, "BIASES", (0.0, -0.05))


@pytest.mark.slow
def test_figures_findings_and_pictures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _small(monkeypatch)
    monkeypatch.setattr(lookahead, "FORECASTERS", ("holt",))
    monkeypatch.setenv("HEADGATE_SHARED_DATA", str(tmp_path / "none"))
    measured = {name: part(1, lambda _: None) for name, part in lookahead.PARTS.items()}
    assert measured["horizon"].figures["finding_wpp_worst"] in (0, 1)
    assert measured["horizon"].figures["horizon_lookahead_omega_20min"] >= 0.8
    assert measured["error"].figures["error_20_profit_30min"] < 1
    assert measured["bias"].figures["bias_-5_wpo_profit_0"] < 1
    assert measured["forecast"].figures["forecast_workloads"] == 4
    assert measured["forecast"].figures["forecast_beats_caf"] >= 3
    samples = {key: value for each in measured.values() for key, value in each.samples.items()}
    drawn = lookahead_plots.plot(Measured({}, samples), tmp_path / "plots")
    assert [path.name for path in drawn] == [f"lookahead-{each}.png" for each in ("fig5", "fig6", "fig7", "forecast")]
    assert all(path.stat().st_size > 10_000 for path in drawn)
