"""``headgate bench forecast``: the forecasters' errors, the coverage of their intervals, and their speed.

Workloads are generated (rates, and the performance of machines) and, where the folder of shared data is, recorded.
``<workload>_<forecaster>_mase`` is against the seasonal naive forecast (one step ago where there is no season);
``_pinball`` and ``_coverage_90`` are those of the quantiles. ``us_per_series_<forecaster>`` is the CPU time of one
update and one forecast of 12 steps for 500 series, divided by 500: the median of some rounds. ``ensemble_beats_naive``
counts the workloads on which the ensemble's error is below that of both naive forecasts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.model.table import Table
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.study import Conclusion, Measured, Progress, Row, Study, columns

if TYPE_CHECKING:
    from headgate_benchmarks.forecast_workloads import Workload

__all__ = ["FORECAST"]

HORIZON = 12


@dataclass(frozen=True, slots=True)
class Sizes:
    series: int = 500
    rounds: int = 20
    season: int = 96
    origins: int = 200
    most: tuple[int, int] = (1_000_000, 1_000_000)
    """Series of a workload, and steps after its warm-up."""

    recorded: bool = True


def _speed(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Measure an update and a forecast of all series."""
    import numpy as np

    from headgate.forecasting.methods import METHODS, recipe_of
    from headgate.forecasting.online import start
    from headgate.simulation.rates import Sinusoid

    begun = 2 * sizes.season
    rate = Sinusoid(75.0, 2.0, period_s=sizes.season * 300.0)
    values = rate.series(np.random.default_rng(seed), sizes.series, begun + sizes.rounds, 300.0)
    samples: dict[str, list[float]] = {}
    for name in METHODS:
        progress(f"speed of {name}")
        forecaster = start(recipe_of(name, sizes.season), sizes.series)
        forecaster.update(values[:, :begun])
        forecaster.forecast(HORIZON)
        took = samples[f"us_per_series_{name}"] = []
        for column in values[:, begun:].T:
            began = time.process_time()
            forecaster.update(column)
            forecaster.forecast(HORIZON)
            took.append((time.process_time() - began) / sizes.series * 1e6)
    figures = {key: round(statistics.median(took), 2) for key, took in samples.items()}
    rows = tuple({"forecaster": key.removeprefix("us_per_series_"), "us": value} for key, value in figures.items())
    shown = columns(("forecaster", "forecaster"), ("us", "update and forecast", "µs", ".1f"))
    return Measured(figures, samples, (Table("CPU time for each of 500 series", shown, rows),))


def _accuracy(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Backtest every forecaster on every workload."""
    from headgate_benchmarks.forecast_workloads import generated, recorded

    worlds = [*generated(seed), *(recorded(progress) if sizes.recorded else ())]
    return Study("accuracy", lambda world: _trials(world, progress, sizes), _conclude).run(worlds, progress)


def _trials(workload: Workload, progress: Progress, sizes: Sizes) -> Iterator[Row]:
    from headgate.forecasting.backtest import backtest
    from headgate.forecasting.methods import methods_for, recipe_of
    from headgate.forecasting.online import Settings, start

    ahead, season = workload.horizon, workload.season
    values = workload.values[: sizes.most[0], : workload.warm_up + sizes.most[1]]
    for name in methods_for(season):
        progress(f"{workload.name}: {name}")
        forecaster = start(recipe_of(name, season), len(values), Settings(horizon=ahead))
        scores = backtest(forecaster, values, ahead, season, workload.warm_up, sizes.origins)
        yield {"workload": workload.name, "forecaster": name, **scores.as_dict()}


def _conclude(rows: Sequence[Row]) -> Conclusion:
    conclusion = Conclusion()
    won, names = 0, list(dict.fromkeys(row["workload"] for row in rows))
    shown = columns(
        ("forecaster", "forecaster"),
        ("mase", "MASE", "", ".3f"),
        ("pinball", "pinball", "", ".3f"),
        ("coverage_90", "within 90 %", "", ".1%"),
    )
    for name in names:
        mine = [{**row, "coverage_90": row["coverage"]["0.9"]} for row in rows if row["workload"] == name]
        for row in mine:
            for measure in ("mase", "pinball", "coverage_90"):
                conclusion.figures[f"{name}_{row['forecaster']}_{measure}"] = row[measure]
        errors = {row["forecaster"]: row["mase"] for row in mine}
        won += errors["ensemble"] < min(error for each, error in errors.items() if each.endswith("naive"))
        conclusion.tables += (Table(name, shown, tuple(mine)),)
    conclusion.figures |= {"workloads": len(names), "ensemble_beats_naive": won}
    return conclusion


FORECAST = Benchmark(
    "forecast",
    "Forecasters on rates and machines: errors, coverage of intervals, speed.",
    {"speed": _speed, "accuracy": _accuracy},
    Sizes(),
    Sizes(20, 3, 12, 10, (3, 40), recorded=False),
    "us_per_series_ensemble us_per_series_naive wave_ensemble_* vm_ec2_*_mase *_pinball *_coverage_90 workloads "
    "ensemble_beats_naive",
)
