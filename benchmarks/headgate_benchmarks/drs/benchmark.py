"""``headgate bench drs``: processors on live Spark, as the models predict them and as they are measured.

Operators wait, by service times drawn from a distribution, so that 22 processors are real on two cores. In one run:

- the operators' service times are taken from their profiles, and each dataflow begins with a **calibration** run, from
  which the costs of its micro-batches here and now are fitted;
- a **chain** and a **loop** of three operators get six allocations of 22 processors each: the recommended one,
  neighbours and bad ones, each in two turns, there and back, so that a machine that becomes slower does not favour the
  first. ``*_rank_correlation`` is Spearman's, of predicted with measured mean sojourns; ``spark_error_p50`` the median
  relative error of the micro-batch model over all allocations, ``mmk_error_p50`` that of M/M/k. ``*_noise`` is half of
  what two turns differ by, and ``*_recommended_is_best`` is true if nothing was faster by more than that;
- **steps** of the rate, 6, 12, 6 and 18 rows a second, under the DRS policy with a latency to keep: how many windows
  pass from a step until processors change, and how long rows wait for a change.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from headgate.model.table import Table
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.drs.calibration import Sizes, network_of, service_times
from headgate_benchmarks.drs.compare import compare, errors_of, figures_of
from headgate_benchmarks.drs.flows import LOOP_SHARE, chain, loop
from headgate_benchmarks.drs.plots import plot
from headgate_benchmarks.drs.steps import run_steps
from headgate_benchmarks.on_spark import on_spark
from headgate_benchmarks.study import Measured, Progress, columns

__all__ = ["DRS"]


def _run(parts: Sequence[str], seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Some parts on one Spark, calibrated first."""
    began = time.monotonic()
    progress("starting Spark")
    with on_spark(f"local[{sizes.threads}]", "2g") as (spark, folder):
        service_s = service_times(spark, folder, seed, progress, sizes)
        figures: dict[str, Any] = {f"service_{name}_s": mean for name, mean in service_s.items()}
        samples: dict[str, Any] = {"service_s": service_s}
        rows: list[dict[str, Any]] = []
        costs = None
        for name, make, rate, back in (
            ("chain", chain, sizes.chain_rate, 0.0),
            ("loop", loop, sizes.loop_rate, LOOP_SHARE),
        ):
            if name in parts:
                network = network_of(service_s, rate, back)
                samples[name], fitted = compare(spark, folder / name, name, make, network, seed, progress, sizes)
                costs = costs or fitted
                figures |= figures_of(name, samples[name])
                rows += samples[name]["allocations"]
        if rows:
            figures |= errors_of(rows)
        if "steps" in parts:
            samples["steps"] = run_steps(spark, folder / "steps", service_s, costs, seed, progress, sizes)
            figures |= samples["steps"]["figures"]
    figures["seconds"] = time.monotonic() - began
    return Measured(figures, samples, _tables(figures, samples))


def _tables(figures: Mapping[str, Any], samples: Mapping[str, Any]) -> tuple[Table, ...]:
    shown = columns(
        ("allocation", "allocation"),
        ("measured_s", "measured", "s", ".2f"),
        ("predicted_s", "micro-batch", "s", ".2f"),
        ("mmk_s", "M/M/k", "s", ".2f"),
    )
    sojourns = [
        Table(f"{name}, {samples[name]['rate_per_s']:g} rows/s: mean sojourn", shown, samples[name]["allocations"])
        for name in ("chain", "loop")
        if name in samples
    ]
    listed = tuple({"figure": key, "value": value} for key, value in figures.items())
    return (*sojourns, Table("Figures", columns(("figure", "figure"), ("value", "value", "", ",.3f")), listed))


ALL = ("chain", "loop", "steps")

DRS = Benchmark(
    "drs",
    "Processors on live Spark: predicted and measured, and the policy in action.",
    {name: partial(_run, (name,)) for name in ALL},
    Sizes(),
    Sizes(
        threads=8,
        processors=9,
        chain_rate=3.0,
        loop_rate=2.0,
        profiling_rate=5.0,
        measurements=1,
        tried=((3, 4, 2),),
        settle=0,
        batches=1,
        most_s=15.0,
        worse=(1.0, 1.3),
        rates=(2.0, 4.0),
        step_s=3.0,
        window_s=1.5,
    ),
    "service_*_s chain_rank_correlation chain_mmk_rank_correlation chain_noise chain_recommended chain_recommended_s "
    "chain_best_other_s chain_recommended_is_best loop_rank_correlation loop_noise loop_recommended_s "
    "loop_recommended_is_best spark_error_p50 spark_error_max mmk_error_p50 change_apply_s change_cost_s "
    "steps_windows_to_change steps_windows_to_change_each steps_latency_max_s steps_share_within steps_changes "
    "steps_processors seconds",
    plot,
    partial(_run, ALL),
)
