"""Part ``hindsight`` of ``headgate bench lookahead``: how near policies come to what could have been.

On the four realistic workloads and the recorded ones, with forecasters of ours: the bound of hindsight, the regret of
every policy against it, and ``hindsight_ratio`` of the receding horizon, all in PLAN-AHEAD's form of profit, Γ - σμ
(``theta_ratio`` is the same in DYN's form, which is 0 on both break-even points). ``..._replayed`` is the receding
horizon that knows what comes: a schedule that can be had, so that the gap between it and the bound is what is not
known. ``step_s`` are CPU seconds of a decision for 30 tasks and 200 machines.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate_benchmarks.measured import Measured, prepare_plots

if TYPE_CHECKING:
    from headgate.planning.programs.hindsight import Hindsight
    from headgate_benchmarks.lookahead.workloads import Workload

__all__ = ["hindsight_part", "plot_hindsight"]

Progress = Callable[[str], None]
POLICIES = ("ce", "exact", "ds2", "lookahead", "receding")
SEASON_S = 86_400.0
BOUND_S = 300.0
MACHINES = 200
STEPS = 12


def hindsight_part(seed: int, progress: Progress) -> Measured:
    """Bounds and regrets on the realistic workloads and the recorded ones, and how long a step takes."""
    from headgate_benchmarks.lookahead.recorded import recorded
    from headgate_benchmarks.lookahead.workloads import realistic

    figures: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    made, found_there = realistic(seed), recorded(seed, progress)
    for workload in (*made, *found_there):
        progress(f"hindsight: the bound of {workload.name}")
        found = _regrets(workload, progress)
        rows += found
        for row in found:
            figures[f"regret_{workload.name}_{row['policy']}"] = row["regret"]
        ours = {row["policy"]: row for row in found}
        figures[f"hindsight_bound_{workload.name}"] = ours["receding"]["bound"]
        figures[f"hindsight_unproven_{workload.name}"] = ours["receding"]["unproven"]
        figures[f"hindsight_ratio_{workload.name}"] = ours["receding"]["hindsight_ratio"]
        figures[f"hindsight_omega_{workload.name}"] = ours["receding"]["omega"]
        figures[f"hindsight_theta_ratio_{workload.name}"] = ours["receding"]["theta_ratio"]
        figures[f"hindsight_ratio_replayed_{workload.name}"] = ours["replayed"]["hindsight_ratio"]
    for prefix, worlds in (("", made), ("recorded_", found_there)):
        for measure in ("ratio", "omega"):
            if worlds:
                least = min(figures[f"hindsight_{measure}_{each.name}"] for each in worlds)
                figures[f"{prefix}hindsight_{measure}_min"] = least
    progress(f"hindsight: steps for 30 tasks and {MACHINES} machines")
    took = _steps(seed)
    figures["step_s_p95"], figures["step_s_max"] = float(np.quantile(took, 0.95)), max(took)
    rounded = {key: round(value, 5) if isinstance(value, float) else value for key, value in figures.items()}
    samples: dict[str, Any] = {"hindsight": [row for row in rows if row["workload"] in {each.name for each in made}]}
    if found_there:
        samples["recorded_hindsight"] = rows[len(samples["hindsight"]) :]
    return Measured(rounded, samples | {"step_s": took}, _text(rows))


def _regrets(workload: Workload, progress: Progress) -> list[dict[str, Any]]:
    from dataclasses import asdict, replace

    from headgate.adaptation.look_ahead import LookAheadSettings
    from headgate.planning.programs.hindsight import hindsight
    from headgate.service.hindsight import regrets
    from headgate.simulation.policies import make_policy
    from headgate.simulation.simulator import simulate

    setting = workload.setting
    bound: Hindsight = hindsight(setting, time_limit_s=BOUND_S)
    ahead = LookAheadSettings("ensemble", 3_600.0, SEASON_S, workload.history)
    runs = []
    for policy in POLICIES:
        progress(f"hindsight: {workload.name}, {policy}")
        runs.append(replace(simulate(setting, make_policy(policy, setting, ahead)), policy=policy))
    knowing = simulate(setting, make_policy("receding", setting, LookAheadSettings("oracle", 3_600.0)))
    runs.append(replace(knowing, policy="replayed"))
    _, found = regrets(runs, bound=bound)
    told = {"workload": workload.name, "bound": bound.bound, "unproven": bound.bound - bound.relaxed}
    course = {"bound_omega": bound.omega.tolist()}
    return [
        told | course | asdict(each) | {"omegas": run.omega[:, 0].tolist(), "costs": run.mu[:, 0].tolist()}
        for each, run in zip(found, runs, strict=True)
    ]


def _steps(seed: int) -> list[float]:
    """CPU seconds of the receding horizon's decisions on ten stages with so many machines."""
    from headgate.adaptation.look_ahead import LookAheadSettings, receding_core
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
    machines = [Machine("m1.xlarge", {names[place % 30]: 4}) for place in range(MACHINES)]
    cores = []

    def make(simulator: Simulator, row: int) -> Any:
        cores.append(receding_core(SimulatedReplication(simulator, row), LookAheadSettings("ensemble")))
        return cores[-1]

    simulator = Simulator(setting)
    policy = Reshaped(make, Deployment(tuple(machines)))
    policy.begin(simulator)
    for _ in range(STEPS):
        simulator.advance(1)
        policy.decide(simulator)
    return [round(took, 4) for took in cores[0].took_s]


def _text(rows: list[dict[str, Any]]) -> str:
    lines = ["  workload              policy          Ω      Γ - σμ    regret   ratio   ratio (DYN)"]
    lines += [
        f"  {row['workload']:<22}{row['policy']:<12}{row['omega']:>6.3f}{row['profit']:>10.4f}"
        f"{row['regret']:>10.4f}{row['hindsight_ratio']:>8.3f}{row['theta_ratio']:>10.3f}"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def plot_hindsight(measured: Measured, folder: Path) -> list[Path]:
    """Profit beside the bound, and throughput over time beside that of the bound's plan."""
    prepare_plots(folder)
    return [
        _drawn(measured.samples[key], folder / f"lookahead-{key.replace('_', '-')}.png")
        for key in ("hindsight", "recorded_hindsight")
        if key in measured.samples
    ]


def _drawn(rows: list[dict[str, Any]], path: Path) -> Path:
    import matplotlib.pyplot as plt

    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    figure, axes = plt.subplots(2, len(workloads), figsize=(4.2 * len(workloads), 7), squeeze=False)
    for place, workload in enumerate(workloads):
        mine = {row["policy"]: row for row in rows if row["workload"] == workload}
        bars, course = axes[0][place], axes[1][place]
        colours = ["#94a3b8" if each not in ("receding", "replayed") else "#12466b" for each in policies]
        bars.bar(policies, [mine[each]["profit"] for each in policies], color=colours)
        bound = mine["receding"]["bound"]
        bars.axhline(bound, color="#c2410c", label="bound")
        bars.axhline(0.9 * bound, color="#c2410c", linestyle=":", label="0.9 of it")
        bars.set_ylim(0.6 * bound, 1.02 * bound)
        bars.set_title(workload)
        bars.tick_params(axis="x", rotation=40)
        hours = np.arange(len(mine["receding"]["omegas"])) / 12
        course.plot(hours, mine["receding"]["bound_omega"], color="#c2410c", linewidth=0.8, label="bound's plan")
        course.plot(hours, mine["receding"]["omegas"], color="#12466b", linewidth=0.9, label="receding")
        course.plot(hours, mine["exact"]["omegas"], color="#94a3b8", linewidth=0.7, label="exact")
        course.set_xlabel("hours")
        course.set_ylim(0, 1.05)
    axes[0][0].set_ylabel("Γ - σμ")
    axes[1][0].set_ylabel("relative throughput")
    axes[0][0].legend(fontsize=8, loc="lower left")
    axes[1][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
