"""The same world and policy in the pooled simulator, beside what happened live."""

from __future__ import annotations

import numpy as np

from headgate.errors import InputError
from headgate.service.recorded_engine import recorded_windows
from headgate.simulation.policies import make_policy
from headgate.simulation.recorded import AsItWas, recorded_setting
from headgate.simulation.run import Run
from headgate.simulation.simulator import simulate
from headgate_benchmarks.adapt.judging import Verdict, series
from headgate_benchmarks.adapt.live import STATIC, Pace, Ran
from headgate_benchmarks.adapt.worlds import Scenario

__all__ = ["sim_live_gap"]

GAPS = ("throughput", "backlog", "cost")


def sim_live_gap(scenario: Scenario, policy: str, ran: Ran, pace: Pace) -> Verdict:
    """How far a simulation of what came is from what happened: as it was, and under the same policy.

    ``throughput`` is the relative difference of the rows that were done, ``backlog`` the mean difference of what waits
    over what comes in a window (or what waits, if that is more), ``cost`` the relative difference of what machines cost
    by time. All are none where no decision was written down: then nobody knows on which terms it would have been made.
    """
    try:
        seen = [each for each in recorded_windows(ran.state, ran.began, pace.every_s) if each.ended_s <= ran.ended + 1]
    except InputError:
        seen = []
    if len(seen) < 2:
        return {f"{kind}_{name}": None for kind in ("replay_gap", "sim_live_gap") for name in GAPS}
    setting = recorded_setting(seen)
    runs = {"as_it_was": simulate(setting, AsItWas(seen))}
    if policy not in STATIC:
        runs["policy"] = simulate(setting, make_policy(policy, setting))
    live = series(scenario, ran, setting.interval_s)
    prices = float(scenario.machine.price_per_h) / 3_600
    cost = sum(live["machines"]) * setting.interval_s * prices
    fields: Verdict = {}
    for name, run in runs.items():
        gaps = _gaps(run, live, cost, pace.window_s)
        kind = "sim_live_gap" if name == "policy" else "replay_gap"
        fields |= {f"{kind}_{key}": value for key, value in gaps.items()}
    return fields


def _gaps(run: Run, live: dict[str, list[float]], cost: float, window_s: float) -> dict[str, float]:
    steps = min(len(run.queues), len(live["waiting"]))
    every_s = run.setting.interval_s
    waits = run.queues[:steps, 0].sum(axis=1)
    lived = np.array(live["waiting"][:steps])
    came = float(np.sum(live["came_per_s"][:steps])) * every_s
    done = float(np.sum(live["done_per_s"][:steps])) * every_s
    simulated = float(run.input_per_s[:steps, 0].sum()) * every_s - float(waits[-1]) + float(lived[0])
    size = max(float(lived.mean()), came / (steps * every_s) * window_s)
    # Machines that are still there have been paid for to the end of their period: by time, as the live ones.
    held_s = sum(min(each.released_s, steps * every_s) - each.acquired_s for each in run.machines)
    price = float(run.setting.cloud.classes[-1].price_per_h) / 3_600
    return {
        "throughput": abs(simulated - done) / max(done, 1.0),
        "backlog": float(np.abs(waits - lived).mean()) / max(size, 1.0),
        "cost": abs(held_s * price - cost) / max(cost, 1e-9),
    }
