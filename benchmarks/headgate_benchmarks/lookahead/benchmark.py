"""``headgate bench lookahead``: the gain from looking ahead, by the length and quality of the forecast.

Part ``horizon`` is PLAN-AHEAD's Fig. 5 (relative throughput, profit and stability by the length of the prediction
interval, with a perfect oracle), ``error`` its Fig. 6 (profit by error and horizon), ``bias`` its Fig. 7 (profit by
error for three biases), all on the paper's world: ten stages of three tasks, three waves, machines as on EC2, and again
on recorded worlds where the folder of shared data is. Each of the paper's findings is a figure ``finding_...``, or
``recorded_finding_...``, 1 if it was reproduced and 0 if not, with a sentence in the table. Part ``forecast`` has
Headgate's forecasters in the oracle's place, on four realistic worlds and the recorded ones; ``hindsight`` has the
bound on every policy and their distance to it there. Profit is the paper's, Γ - σμ, and a mean over some worlds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.lookahead.forecast import forecast
from headgate_benchmarks.lookahead.hindsight import hindsight
from headgate_benchmarks.lookahead.paper import bias, error, horizon
from headgate_benchmarks.lookahead.plots import plot
from headgate_benchmarks.lookahead.trials import Sizes
from headgate_benchmarks.study import Measured, Progress

__all__ = ["LOOKAHEAD"]

PARTS = {"horizon": horizon, "error": error, "bias": bias, "forecast": forecast, "hindsight": hindsight}


def _whole(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    measured = reduce(Measured.__or__, (part(seed, progress, sizes) for part in PARTS.values()))
    return measured | Measured(_counted(measured.figures))


def _counted(figures: Mapping[str, Any]) -> dict[str, int]:
    """How many of the paper's findings there are and were reproduced, on generated and on recorded worlds.

    >>> _counted({"finding_a": 1, "finding_b": 0, "recorded_finding_a": 1, "recorded_worlds_with_a": 3})
    {'findings': 2, 'findings_reproduced': 1, 'recorded_findings': 1, 'recorded_findings_reproduced': 1}
    """
    counts: dict[str, int] = {}
    for prefix in ("", "recorded_"):
        held = [int(value) for key, value in figures.items() if key.startswith(f"{prefix}finding_")]
        counts |= {f"{prefix}findings": len(held), f"{prefix}findings_reproduced": sum(held)} if held else {}
    return counts


LOOKAHEAD = Benchmark(
    "lookahead",
    "The gain from looking ahead, by the length and quality of the forecast.",
    PARTS,
    Sizes(),
    Sizes(1, 1, 4, (10, 20), (0.0, 0.20), ("bursts",), recorded=False, bound_s=2.0, machines=8, decisions=2),
    "horizon_lookahead_profit_*min horizon_caf_omega horizon_wpp_chi_*min horizon_gain_over_caf "
    "finding_all_meet_throughput finding_lookahead_beats_reactive finding_profit_rises_to_30_min "
    "finding_profit_rises_to_60_min finding_up_to_20_percent finding_lookahead_most_stable finding_wpp_worst "
    "finding_caf_like_waaf error_*_profit_*min finding_profit_falls_with_error "
    "finding_long_horizon_hurts_above_10_percent bias_*_profit_* bias_wpo_omega_min bias_lookahead_omega_min "
    "bias_lookahead_best_with_throughput finding_lookahead_best_at_small_errors finding_wpa_steady "
    "finding_wpo_beats_wpa_low_bias finding_wpo_poor_unbiased finding_wpp_worst_under_all "
    "forecast_*_lookahead_ensemble_theta forecast_workloads forecast_beats_caf forecast_omega_min regret_*_receding "
    "hindsight_bound_* hindsight_unproven_* hindsight_ratio_* hindsight_ratio_replayed_* hindsight_theta_ratio_* "
    "hindsight_ratio_min hindsight_omega_min step_s_p95 step_s_max findings findings_reproduced",
    plot,
    _whole,
)
