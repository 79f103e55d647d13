"""Part ``forecast`` of ``headgate bench lookahead``: look-ahead with Headgate's forecasters in the oracle's place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.lookahead.trials import BLIND, MEASURES, Sizes, realistic_worlds, sideways, trial
from headgate_benchmarks.study import Conclusion, Measured, Progress, Row, Study, means

if TYPE_CHECKING:
    from headgate_benchmarks.lookahead.workloads import Workload

__all__ = ["forecast"]

FORECASTERS = ("ensemble", "naive", "oracle")
HORIZON_MIN = 60
GENERATED = ("day", "rush", "bursts", "growth")
"""The worlds of ``realistic``; all others are recorded."""


def forecast(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Look-ahead's profit with each forecaster against CAF's."""
    from headgate_benchmarks.lookahead.recorded import recorded

    worlds: list[Workload] = []
    for turn in range(sizes.forecast_seeds):
        worlds += realistic_worlds(seed + turn, sizes)
        worlds += recorded(seed + turn, progress if turn == 0 else lambda _: None) if sizes.recorded else []
    return Study("forecast", partial(_trials, progress), _conclude).run(worlds, progress)


def _trials(progress: Progress, world: Workload) -> Iterator[Row]:
    from headgate.adaptation.look_ahead import PolicySettings

    progress(f"forecast: {world.name}")
    for policy in BLIND:
        yield trial(world, policy, PolicySettings(), forecaster="none")
    for forecaster in FORECASTERS:
        ahead = PolicySettings(forecaster, 60.0 * HORIZON_MIN, 300.0 * world.season, world.history)
        yield trial(world, "lookahead", ahead, forecaster=forecaster)


def _conclude(rows: Sequence[Row]) -> Conclusion:
    mean = means(rows, MEASURES, "workload", "policy", "forecaster")
    names = list(dict.fromkeys(row["workload"] for row in rows))
    kinds = {policy: (policy, "none") for policy in BLIND}
    kinds |= {f"lookahead_{each}": ("lookahead", each) for each in FORECASTERS}
    figures: dict[str, Any] = {
        f"forecast_{name}_{label}_{measure}": mean[name, *kind][measure]
        for name in names
        for label, kind in kinds.items()
        for measure in ("theta", "omega", "chi", "changes")
    }
    ours = {name: mean[name, "lookahead", FORECASTERS[0]] for name in names}
    beaten = {name: ours[name]["theta"] > mean[name, "caf", "none"]["theta"] for name in names}
    generated = [name for name in names if name in GENERATED]
    figures |= {
        "forecast_workloads": len(generated),
        "forecast_beats_caf": sum(beaten[name] for name in generated),
        "forecast_recorded_workloads": len(names) - len(generated),
        "forecast_recorded_beats_caf": sum(beaten[name] for name in names if name not in GENERATED),
        "forecast_omega_min": min(each["omega"] for each in ours.values()),
    }
    tables = tuple(
        sideways(
            f"{title} with each forecaster, {HORIZON_MIN} min ahead",
            kinds,
            {name: [mean[name, *kind][measure] for kind in kinds.values()] for name in names},
            "world",
        )
        for measure, title in (("theta", "Profit Θ"), ("omega", "Throughput Ω"))
    )
    return Conclusion(figures, tables)
