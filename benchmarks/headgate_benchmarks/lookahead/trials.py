"""Trials of policies that look ahead, and studies of them on generated and recorded worlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headgate.model.table import Table
from headgate_benchmarks.study import Measured, Progress, Row, Study, columns

if TYPE_CHECKING:
    from headgate.adaptation.look_ahead import PolicySettings
    from headgate_benchmarks.lookahead.workloads import Workload

__all__ = ["BLIND", "MEASURES", "REACTIVE", "Sizes", "on_worlds", "realistic_worlds", "shortened", "sideways", "trial"]

BLIND = ("caf", "waaf")
"""Reactive models that use no forecast."""

REACTIVE = (*BLIND, "wpa", "wpo", "wpp")
MEASURES = ("omega", "gamma", "cost", "theta", "profit", "chi", "in_band", "changes")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many generated worlds a mean is over, and of how many steps; which horizons; and limits of ``hindsight``."""

    seeds: int = 3
    forecast_seeds: int = 2
    steps: int = 144
    horizons_min: tuple[int, ...] = (10, 20, 30, 40, 50, 60)
    errors: tuple[float, ...] = (0.0, 0.05, 0.10, 0.15, 0.20)
    realistic: tuple[str, ...] = ("day", "rush", "bursts", "growth")
    recorded: bool = True
    bound_s: float = 300.0
    machines: int = 200
    decisions: int = 12


def trial(workload: Workload, policy: str, ahead: PolicySettings, **about: Any) -> Row:
    """One run of a policy in a world, as a row."""
    from headgate.simulation.policies import make_policy
    from headgate.simulation.simulator import simulate

    seen = simulate(workload.setting, make_policy(policy, workload.setting, ahead))
    summary = seen.summary()
    assert seen.break_even is not None
    profit = seen.break_even.times(workload.setting.hours).net_value(summary.gamma, summary.cost)
    measures = ("omega", "gamma", "cost", "theta", "in_band", "within", "changes")
    return {
        "workload": workload.name,
        "policy": policy,
        **about,
        **{measure: getattr(summary, measure) for measure in measures},
        "profit": profit,
        "chi": summary.left_band,
    }


def shortened(worlds: Iterable[Workload], steps: int) -> list[Workload]:
    """The worlds with at most so many steps."""
    return [
        replace(world, setting=replace(world.setting, intervals=min(steps, world.setting.intervals)))
        for world in worlds
    ]


def realistic_worlds(seed: int, sizes: Sizes) -> list[Workload]:
    """The realistic worlds that the sizes name."""
    from headgate_benchmarks.lookahead.workloads import realistic

    return shortened((world for world in realistic(seed) if world.name in sizes.realistic), sizes.steps)


def on_worlds(study: Study[Workload], seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """A study on the paper's generated worlds, and on the recorded ones where there are any.

    Figures of the second are called ``recorded_...``: means over the recorded worlds, and for each finding in how many
    of them it holds by itself, ``recorded_worlds_with_...``.
    """
    from headgate_benchmarks.lookahead.recorded import recorded
    from headgate_benchmarks.lookahead.workloads import paper

    measured = study.run(shortened((paper(seed + turn) for turn in range(sizes.seeds)), sizes.steps), progress)
    worlds = recorded(seed, progress) if sizes.recorded else []
    if not worlds:
        return measured
    more = study.run(worlds, progress, "recorded_")
    rows = more.samples[f"recorded_{study.name}"]
    by_world = [study.conclude([row for row in rows if row["workload"] == world.name]) for world in worlds]
    counts: dict[str, int] = {}
    for finding in (finding for conclusion in by_world for finding in conclusion.findings):
        name = f"recorded_worlds_with_{finding.name}"
        counts[name] = counts.get(name, 0) + finding.holds
    return measured | more | Measured(counts)


def sideways(title: str, across: Iterable[Any], rows: Mapping[str, Iterable[float]], of: str = "policy") -> Table:
    """A table with a row for each policy and a column for each value of what was varied."""
    keys = [str(each) for each in across]
    shown = columns((of, of), *((key, key, "", ".4g") for key in keys))
    return Table(
        title, shown, tuple({of: name} | dict(zip(keys, values, strict=True)) for name, values in rows.items())
    )
