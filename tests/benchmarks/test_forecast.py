"""The benchmark of forecasts: its workloads are there, and forecasters are as fast as claimed."""

from __future__ import annotations

import time

import numpy as np
import pytest

from headgate.forecasting.methods import recipe_of
from headgate.forecasting.online import start
from headgate_benchmarks import forecast_workloads
from headgate_benchmarks.forecast import FORECAST
from headgate_benchmarks.forecast_workloads import Workload, generated, recorded


def test_generated_workloads_are_rates_and_machines() -> None:
    workloads = generated(1)
    assert [each.name for each in workloads] == ["wave", "random_walk", "bursts", "vm_ec2"]
    for each in workloads:
        assert np.isfinite(each.values).all()
        assert each.values.shape[1] > each.warm_up + each.horizon
    assert (generated(1)[1].values == workloads[1].values).all()


def test_without_shared_data_recorded_workloads_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_SHARED_DATA", "/nowhere")
    steps: list[str] = []
    assert recorded(steps.append) == []
    assert "left out" in steps[0]


def test_accuracy_is_by_workload_and_forecaster(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).uniform(5, 15, (2, 60))
    monkeypatch.setattr(forecast_workloads, "generated", lambda _: [Workload("few", values, horizon=3, warm_up=20)])
    measured = FORECAST.parts["accuracy"](1, lambda _: None, FORECAST.smoke)
    assert measured.figures["workloads"] == 1
    assert measured.figures["few_kalman_mase"] > 0
    assert 0.5 < measured.figures["few_kalman_coverage_90"] <= 1
    assert {row["forecaster"] for row in measured.tables[0].rows} >= {"ensemble", "naive"}


def test_hundreds_of_series_take_well_under_a_millisecond_each() -> None:
    values = np.random.default_rng(2).uniform(5, 15, (300, 40))
    forecaster = start(recipe_of("ensemble", 24), 300)
    forecaster.update(values[:, :36])
    took = []
    for column in values[:, 36:].T:
        began = time.process_time()
        forecaster.update(column)
        forecaster.forecast(12)
        took.append((time.process_time() - began) / 300)
    assert min(took) < 0.000_5
