"""Part ``forecast`` of ``headgate bench lookahead``: look-ahead with forecasters of ours in the oracle's place."""

from __future__ import annotations

from typing import Any

from headgate_benchmarks.lookahead.trials import BLIND, STEP_S, Progress, Row, head, means, trial
from headgate_benchmarks.measured import Measured

__all__ = ["forecast_part"]

FORECASTERS = ("ensemble", "naive")
FORECAST_HORIZON_MIN = 60
FORECAST_SEEDS = 2


def forecast_part(seed: int, progress: Progress) -> Measured:
    """Forecasters of ours: look-ahead's profit against CAF's."""
    from headgate.adaptation.look_ahead import LookAheadSettings
    from headgate_benchmarks.lookahead.recorded import recorded
    from headgate_benchmarks.lookahead.workloads import realistic

    rows: list[Row] = []
    made: list[str] = []
    for turn in range(FORECAST_SEEDS):
        worlds = [*realistic(seed + turn), *recorded(seed + turn, progress if turn == 0 else _silent)]
        made = [each.name for each in realistic(seed + turn)]
        for world in worlds:
            progress(f"forecast: {world.name}, world {turn + 1} of {FORECAST_SEEDS}")
            rows += [trial(world, policy, LookAheadSettings(), forecaster="none") for policy in BLIND]
            for forecaster in (*FORECASTERS, "oracle"):
                ahead = LookAheadSettings(forecaster, 60.0 * FORECAST_HORIZON_MIN, STEP_S * world.season, world.history)
                rows.append(trial(world, "lookahead", ahead, forecaster=forecaster))
    mean = means(rows, "workload", "policy", "forecaster")
    names = list(dict.fromkeys(row["workload"] for row in rows))
    figures: dict[str, Any] = {}
    lines = [
        f"Θ with forecasters of ours, {FORECAST_HORIZON_MIN} min ahead, means of {FORECAST_SEEDS} worlds (Ω beside)"
    ]
    shown = [("caf", "none"), ("waaf", "none"), *(("lookahead", each) for each in (*FORECASTERS, "oracle"))]
    lines.append(head(f"{p if p != 'lookahead' else f}" for p, f in shown).replace(f"{'':<16}", f"{'':<18}"))
    for name in names:
        found = [mean[name, policy, forecaster] for policy, forecaster in shown]
        lines.append(f"  {name:<18}" + "".join(f"{each['theta']:>10.4f}" for each in found))
        lines.append(f"  {'':<18}" + "".join(f"{each['omega']:>10.3f}" for each in found))
        for (policy, forecaster), each in zip(shown, found, strict=True):
            label = policy if policy != "lookahead" else f"lookahead_{forecaster}"
            for measure in ("theta", "omega", "chi", "changes"):
                figures[f"forecast_{name}_{label}_{measure}"] = each[measure]
    beaten = {
        name: mean[name, "lookahead", FORECASTERS[0]]["theta"] > mean[name, "caf", "none"]["theta"] for name in names
    }
    figures |= {
        "forecast_workloads": len(made),
        "forecast_beats_caf": sum(beaten[name] for name in made),
        "forecast_recorded_workloads": len(names) - len(made),
        "forecast_recorded_beats_caf": sum(beaten[name] for name in names if name not in made),
        "forecast_omega_min": min(mean[name, "lookahead", FORECASTERS[0]]["omega"] for name in names),
    }
    told = f"look-ahead with the {FORECASTERS[0]} is above CAF on {figures['forecast_beats_caf']} of {len(made)}"
    if len(names) > len(made):
        told += f", and on {figures['forecast_recorded_beats_caf']} of {len(names) - len(made)} recorded ones"
    return Measured(figures, {"forecast": rows}, "\n".join([*lines, told]) + "\n")


def _silent(step: str) -> None:
    del step
