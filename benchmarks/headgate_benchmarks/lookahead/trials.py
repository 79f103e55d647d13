"""Trials of policies that look ahead, what a study makes of them, and the paper's findings one by one."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.measured import Measured

if TYPE_CHECKING:
    from headgate.adaptation.look_ahead import LookAheadSettings
    from headgate_benchmarks.lookahead.workloads import Workload

__all__ = [
    "BLIND",
    "REACTIVE",
    "STEP_S",
    "Finding",
    "Progress",
    "Row",
    "Study",
    "Told",
    "head",
    "line",
    "means",
    "part_of",
    "trial",
]

Progress = Callable[[str], None]
Row = dict[str, Any]

SEEDS = 3
"""Generated worlds that a mean is of."""

STEP_S = 300.0
BLIND = ("caf", "waaf")
"""Reactive models that use no forecast."""

REACTIVE = (*BLIND, "wpa", "wpo", "wpp")


@dataclass(frozen=True, slots=True)
class Finding:
    """One of the paper's findings, whether it is reproduced, and a sentence with the figures."""

    name: str
    holds: bool
    sentence: str

    def line(self, more: str = "") -> str:
        return f"  {'reproduced' if self.holds else 'NOT reproduced':<15} {self.sentence}{more}"


@dataclass(slots=True)
class Told:
    """What a study tells of its trials."""

    figures: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    table: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def find(self, name: str, holds: bool, sentence: str) -> None:
        self.findings.append(Finding(name, holds, sentence))


@dataclass(frozen=True, slots=True)
class Study:
    """One of the paper's figures: the trials that it needs of a world, and what it tells of those of some worlds."""

    name: str
    trials: Callable[[Workload], list[Row]]
    told: Callable[[Sequence[Row]], Told]


def trial(workload: Workload, policy: str, ahead: LookAheadSettings, **about: Any) -> Row:
    """One run of a policy in a world, as a row."""
    from headgate.simulation.policies import make_policy
    from headgate.simulation.simulator import simulate

    seen = simulate(workload.setting, make_policy(policy, workload.setting, ahead))
    summary = seen.summary()
    assert seen.break_even is not None
    profit = seen.break_even.times(workload.setting.hours).net_value(summary.gamma, summary.cost)
    return {
        "workload": workload.name,
        "policy": policy,
        **about,
        "omega": summary.omega,
        "gamma": summary.gamma,
        "cost": summary.cost,
        "theta": summary.theta,
        "profit": profit,
        "chi": summary.left_band,
        "in_band": summary.in_band,
        "within": summary.within,
        "changes": summary.changes,
    }


def means(rows: Iterable[Row], *by: str) -> dict[tuple[Any, ...], dict[str, float]]:
    """Means over worlds."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    measures = ("omega", "gamma", "cost", "theta", "profit", "chi", "in_band", "changes")
    return {
        key: {name: statistics.mean(row[name] for row in members) for name in measures}
        for key, members in groups.items()
    }


def head(labels: Iterable[Any]) -> str:
    """The first line of a table."""
    return f"  {'':<16}" + "".join(f"{label:>10}" for label in labels)


def line(label: str, values: Iterable[float]) -> str:
    """A line of a table."""
    return f"  {label:<16}" + "".join(f"{value:>10.4g}" for value in values)


def part_of(study: Study) -> Callable[[int, Progress], Measured]:
    """A study of the paper's generated worlds, and of the recorded ones where there are any.

    Figures of the second are called ``recorded_...``: means over the recorded worlds, and for each finding in how many
    of them it holds alone, ``recorded_worlds_with_...``.
    """

    def run(seed: int, progress: Progress) -> Measured:
        from headgate_benchmarks.lookahead.recorded import recorded
        from headgate_benchmarks.lookahead.workloads import paper

        made = [paper(seed + turn) for turn in range(SEEDS)]
        rows = _tried(study, made, "world", progress)
        told = study.told(rows)
        figures = told.figures | {f"finding_{each.name}": int(each.holds) for each in told.findings}
        samples: dict[str, Any] = {study.name: rows, f"{study.name}_findings": [each.line() for each in told.findings]}
        lines = [*told.table, *(each.line() for each in told.findings), *told.remarks]
        worlds = recorded(seed, progress)
        if worlds:
            rows = _tried(study, worlds, "recorded world", progress)
            more = _of_recorded(study, rows)
            samples |= {f"recorded_{study.name}": rows, f"recorded_{study.name}_findings": more.remarks}
            lines += ["", f"on {len(worlds)} recorded worlds", *more.table, *more.remarks]
            figures |= more.figures
        return Measured(figures, samples, "\n".join(lines) + "\n")

    return run


def _tried(study: Study, worlds: Sequence[Workload], what: str, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for turn, world in enumerate(worlds, start=1):
        progress(f"{study.name}: {what} {turn} of {len(worlds)}")
        rows += study.trials(world)
    return rows


def _of_recorded(study: Study, rows: Sequence[Row]) -> Told:
    """What a study tells of recorded worlds, all together and, of the findings, one by one."""
    told = study.told(rows)
    names = list(dict.fromkeys(row["workload"] for row in rows))
    alone = [study.told([row for row in rows if row["workload"] == name]) for name in names]
    figures = {f"recorded_{key}": value for key, value in told.figures.items()}
    remarks = []
    for place, each in enumerate(told.findings):
        holds = sum(other.findings[place].holds for other in alone)
        figures[f"recorded_finding_{each.name}"] = int(each.holds)
        figures[f"recorded_worlds_with_{each.name}"] = holds
        remarks.append(each.line(f" [alone in {holds} of {len(names)}]"))
    return Told(figures, told.findings, told.table, [*remarks, *told.remarks])
