"""Part ``hindsight`` of ``headgate bench lookahead``: the distance of policies to the best possible in hindsight.

On the four realistic worlds and the recorded ones, with Headgate's forecasters: the bound of hindsight, the regret of
every policy against it, and ``hindsight_ratio`` of the receding horizon, all in PLAN-AHEAD's form of profit, Γ - σμ
(``theta_ratio`` is the same in DYN's form, which is 0 on both break-even points). ``..._replayed`` is the receding
horizon that knows the future: a schedule that can be reached, so that the gap between it and the bound is what is not
known. ``step_s`` are CPU seconds of a decision for 30 tasks and 200 machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.model.table import Table
from headgate_benchmarks.lookahead.trials import Sizes, realistic_worlds
from headgate_benchmarks.study import Conclusion, Measured, Progress, Row, Study, columns

if TYPE_CHECKING:
    from headgate.planning.programs.hindsight import Hindsight
    from headgate_benchmarks.lookahead.workloads import Workload

__all__ = ["hindsight"]

POLICIES = ("ce", "exact", "ds2", "lookahead", "receding")
SEASON_S = 86_400.0


def hindsight(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Bounds and regrets on the realistic worlds and the recorded ones, and the time of a decision."""
    from headgate_benchmarks.lookahead.recorded import recorded

    study: Study[Workload] = Study("hindsight", lambda world: _trials(world, progress, sizes), _conclude)
    measured = study.run(realistic_worlds(seed, sizes), progress)
    worlds = recorded(seed, progress) if sizes.recorded else []
    if worlds:
        more = study.run(worlds, progress, "recorded_")
        # Figures of one world have its name, and need no prefix.
        named = {key.removeprefix("recorded_"): value for key, value in more.figures.items() if "_min" not in key}
        least = {key: value for key, value in more.figures.items() if "_min" in key}
        measured |= replace(more, figures=named | least)
    progress(f"hindsight: decisions for 30 tasks and {sizes.machines} machines")
    took = _decisions(seed, sizes)
    return measured | Measured(
        {"step_s_p95": float(np.quantile(took, 0.95)), "step_s_max": max(took)}, {"step_s": took}
    )


def _trials(world: Workload, progress: Progress, sizes: Sizes) -> Iterator[Row]:
    from headgate.adaptation.look_ahead import PolicySettings
    from headgate.planning.programs import hindsight as bounds
    from headgate.service.hindsight import regrets
    from headgate.simulation.policies import make_policy
    from headgate.simulation.simulator import simulate

    setting = world.setting
    bound: Hindsight = bounds.hindsight(setting, time_limit_s=sizes.bound_s)
    ahead = PolicySettings("ensemble", 3_600.0, SEASON_S, world.history)
    runs = []
    for policy in (*POLICIES, "replayed"):
        progress(f"hindsight: {world.name}, {policy}")
        chosen = ("receding", PolicySettings("oracle", 3_600.0)) if policy == "replayed" else (policy, ahead)
        runs.append(replace(simulate(setting, make_policy(chosen[0], setting, chosen[1])), policy=policy))
    _, regret_of = regrets(runs, bound=bound)
    about = {"workload": world.name, "bound": bound.bound, "unproven": bound.bound - bound.relaxed}
    for each, run in zip(regret_of, runs, strict=True):
        series = {"omegas": run.omega[:, 0].tolist(), "costs": run.mu[:, 0].tolist()}
        yield about | asdict(each) | series | {"bound_omega": bound.omega.tolist()}


def _conclude(rows: Sequence[Row]) -> Conclusion:
    figures: dict[str, Any] = {f"regret_{row['workload']}_{row['policy']}": row["regret"] for row in rows}
    ratios: list[float] = []
    omegas: list[float] = []
    for row in rows:
        name = row["workload"]
        if row["policy"] == "replayed":
            figures[f"hindsight_ratio_replayed_{name}"] = row["hindsight_ratio"]
        elif row["policy"] == "receding":
            figures |= {
                f"hindsight_bound_{name}": row["bound"],
                f"hindsight_unproven_{name}": row["unproven"],
                f"hindsight_ratio_{name}": row["hindsight_ratio"],
                f"hindsight_omega_{name}": row["omega"],
                f"hindsight_theta_ratio_{name}": row["theta_ratio"],
            }
            ratios.append(row["hindsight_ratio"])
            omegas.append(row["omega"])
    figures |= {"hindsight_ratio_min": min(ratios), "hindsight_omega_min": min(omegas)}
    shown = columns(
        ("workload", "world"),
        ("policy", "policy"),
        ("omega", "Ω", "", ".3f"),
        ("profit", "Γ - σμ", "", ".4f"),
        ("regret", "regret", "", ".4f"),
        ("hindsight_ratio", "ratio", "", ".3f"),
        ("theta_ratio", "ratio (DYN)", "", ".3f"),
    )
    return Conclusion(figures, (Table("Hindsight", shown, tuple(rows)),))


def _decisions(seed: int, sizes: Sizes) -> list[float]:
    """CPU seconds of the receding horizon's decisions on ten stages with so many machines."""
    from headgate.adaptation.look_ahead import PolicySettings, receding_core
    from headgate.model.cluster.deployment import Deployment, Machine
    from headgate.simulation.perfect_forecast import SimulatedReplication
    from headgate.simulation.rates import ArrivalRate, RandomWalk
    from headgate.simulation.reshaped import Reshaped
    from headgate.simulation.simulator import Simulator
    from headgate_benchmarks.dynamic import ten_stages, varying_setting

    flow = ten_stages()
    # About what so many of the largest machines are there for.
    rates: dict[str, ArrivalRate] = {f"s1{each}": RandomWalk(800.0) for each in "abc"}
    setting = varying_setting(flow, rates, 12.0, 300.0, seed)
    names = [str(task.id) for task in flow.tasks]
    machines = [Machine("m1.xlarge", {names[place % 30]: 4}) for place in range(sizes.machines)]
    cores = []

    def make(simulator: Simulator, row: int) -> Any:
        cores.append(receding_core(SimulatedReplication(simulator, row), PolicySettings("ensemble")))
        return cores[-1]

    simulator = Simulator(setting)
    policy = Reshaped(make, Deployment(tuple(machines)))
    policy.begin(simulator)
    for _ in range(sizes.decisions):
        simulator.advance(1)
        policy.decide(simulator)
    return [round(took, 4) for took in cores[0].took_s]
