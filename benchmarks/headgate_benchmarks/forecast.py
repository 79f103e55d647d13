"""``headgate bench forecast``: how good the forecasters are, how honest their intervals, and how quick.

Workloads are generated, rates and the performance of machines, and recorded ones where the folder of shared data is.
``<workload>_<forecaster>_mase`` is against the seasonal naive forecast (one step ago where there is no season), and
``_pinball`` and ``_coverage_90`` are the quantiles'. ``us_per_series_<forecaster>`` is the CPU time of one update and
one forecast of 12 steps for 500 series, divided by 500: the median of some rounds. ``ensemble_beats_naive`` counts the
workloads on which the ensemble's error is below that of both naive forecasts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.measured import Measured

if TYPE_CHECKING:
    from headgate.forecasting.backtest import Scores
    from headgate_benchmarks.forecast_workloads import Workload

__all__ = ["accuracy", "run", "speed"]

Progress = Callable[[str], None]
SERIES, ROUNDS, SEASON, HORIZON = 500, 20, 96, 12
ORIGINS = 200


def run(seed: int, progress: Progress) -> Measured:
    """Measure accuracy and speed."""
    quick, good = speed(seed, progress), accuracy(seed, progress)
    return Measured({**quick.figures, **good.figures}, {**quick.samples, **good.samples}, quick.table + good.table)


def speed(seed: int, progress: Progress) -> Measured:
    """Measure an update and a forecast of 500 series."""
    import numpy as np

    from headgate.forecasting.methods import METHODS, recipe_of
    from headgate.forecasting.online import start
    from headgate.simulation.rates import Sinusoid

    rate = Sinusoid(75.0, 2.0, period_s=SEASON * 300.0)
    values = rate.series(np.random.default_rng(seed), SERIES, 2 * SEASON + ROUNDS, 300.0)
    figures: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    lines = [f"{'microseconds for each of 500 series':<36} {'update + forecast':>18}"]
    for name in METHODS:
        progress(f"speed of {name}")
        forecaster = start(recipe_of(name, SEASON), SERIES)
        forecaster.update(values[:, : 2 * SEASON])
        forecaster.forecast(HORIZON)
        took = []
        for column in values[:, 2 * SEASON :].T:
            began = time.process_time()
            forecaster.update(column)
            forecaster.forecast(HORIZON)
            took.append((time.process_time() - began) / SERIES * 1e6)
        figures[f"us_per_series_{name}"] = round(statistics.median(took), 2)
        samples[f"us_per_series_{name}"] = took
        lines.append(f"  {name:<34} {figures[f'us_per_series_{name}']:>18.1f}")
    return Measured(figures, samples, "\n".join(lines) + "\n\n")


def accuracy(seed: int, progress: Progress) -> Measured:
    """Backtest every forecaster on every workload."""
    from headgate_benchmarks.forecast_workloads import generated, recorded

    figures: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    lines: list[str] = []
    won = 0
    workloads = [*generated(seed), *recorded(progress)]
    for workload in workloads:
        scores = _scores(workload, progress)
        for name, each in scores.items():
            facts = each.as_dict()
            figures[f"{workload.name}_{name}_mase"] = facts["mase"]
            figures[f"{workload.name}_{name}_pinball"] = facts["pinball"]
            figures[f"{workload.name}_{name}_coverage_90"] = facts["coverage"]["0.9"]
            samples[f"{workload.name}_{name}"] = facts
        yardsticks = [each.mase for name, each in scores.items() if name.endswith("naive")]
        won += scores["ensemble"].mase < min(yardsticks)
        lines += _table(workload, scores)
    figures |= {"workloads": len(workloads), "ensemble_beats_naive": won}
    lines.append(f"the ensemble beats both naive forecasts on {won} of {len(workloads)} workloads")
    return Measured(figures, samples, "\n".join(lines) + "\n")


def _scores(workload: Workload, progress: Progress) -> dict[str, Scores]:
    from headgate.forecasting.backtest import backtest
    from headgate.forecasting.methods import methods_for, recipe_of
    from headgate.forecasting.online import Settings, start

    found = {}
    for name in methods_for(workload.season):
        progress(f"{workload.name}: {name}")
        forecaster = start(recipe_of(name, workload.season), len(workload.values), Settings(horizon=workload.horizon))
        found[name] = backtest(
            forecaster, workload.values, workload.horizon, workload.season, workload.warm_up, ORIGINS
        )  # fmt: skip
    return found


def _table(workload: Workload, scores: dict[str, Scores]) -> list[str]:
    about = f"{len(workload.values)} series of {workload.values.shape[1]:,} steps, {workload.horizon} ahead"
    season = f", a season of {workload.season}" if workload.season else ""
    lines = [f"{workload.name}: {about}{season}", f"  {'':<16}{'MASE':>8}{'pinball':>9}{'within 90 %':>13}"]
    for name, each in scores.items():
        facts = each.as_dict()
        lines.append(f"  {name:<16}{facts['mase']:>8.3f}{facts['pinball']:>9.3f}{facts['coverage']['0.9']:>13.1%}")
    return [*lines, ""]
