"""``headgate bench adapt``: engines that decide by themselves, on real Spark workers, beside what others would do.

Every scenario is lived through under every policy: a standalone cluster whose workers are machines of the local
provider, ``headgate run --mode auto --policy ...``, and a generator that drops files of rows on time, whatever the
engine does. What a row costs is a wait on a held core, so ten slots on two cores are real capacity, or, in ``cpu``,
arithmetic on throttled machines.

Time is compressed: machines are paid for in periods of two minutes, decisions are made every ten seconds on the last
twenty, and guard rails are shorter by the same factor. ``static-peak`` and ``static-mean`` decide nothing and have from
beginning to end the machines for the highest and the mean rate.

By scenario and policy:

- ``theta``, ``omega``, ``gamma``, ``violations`` (share of windows below the band or above the agreed latency),
  ``core_hours``, ``cost``: of a judge that reads the generator's log, what sinks noted, and the life of machines;
- ``changes``: actions that were carried out; ``abandoned`` and ``unexplained``: decisions that were not, and those of
  them without a reason; ``late_epochs``: epochs that ran an old alternate after the one under way;
- ``converge_s``: from a jump of the rate until two windows in a row are as agreed, the longest; none if never;
- ``prediction_error``: the median over verified decisions of the largest relative error;
- ``sim_live_gap_*``: the pooled simulator under the same policy, and ``replay_gap_*`` with the machines and alternates
  that there were, against live: rows done, what waits, what machines cost by time;
- ``judge_error``: the engine's own Omega, Gamma and cost against the judge's; ``money_error``: the engine's bill minus
  the judge's, exact; ``lost`` and ``doubled`` rows at sinks;
- ``controller_cpu``: share of a processor that deciding takes.

``--only`` takes scenarios and policies: ``--only step,ce,ds2``. Without it, step and the second wave run under seven
policies, about 85 minutes; with ``--quick`` step under four. The machine's load is in the figures: above 1.5 they are
those of a busy machine, and a note says so.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from headgate.model.table import Table
from headgate_benchmarks.adapt.judging import Verdict, judged, series
from headgate_benchmarks.adapt.live import STATIC, Pace, run_live
from headgate_benchmarks.adapt.plots import plot
from headgate_benchmarks.adapt.simulated import sim_live_gap
from headgate_benchmarks.adapt.worlds import SCENARIOS
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.checkout import make_importable
from headgate_benchmarks.study import Measured, Progress, columns

__all__ = ["ADAPT"]

POLICIES = (*STATIC, "ds2", "flink", "threshold", "ce", "drs", "lookahead", "exact")
QUIET = 1.5
SHOWN = columns(
    ("policy", "policy"),
    ("theta", "Θ", "", ".3f"),
    ("omega", "Ω", "", ".3f"),
    ("gamma", "Γ", "", ".3f"),
    ("violations", "violations", "", ".2f"),
    ("core_hours", "core-hours", "", ".3f"),
    ("cost", "cost", "USD", ".4f"),
    ("changes", "changes"),
    ("converge_s", "converged", "s", ".0f"),
    ("prediction_error", "prediction", "", ".2f"),
    ("judge_error", "judge", "", ".4f"),
    ("lost", "lost"),
    ("load_after", "load", "", ".1f"),
)


@dataclass(frozen=True, slots=True)
class Sizes:
    scenarios: tuple[str, ...] = ("step", "wave-dear")
    policies: tuple[str, ...] = ("static-peak", "static-mean", "ds2", "flink", "ce", "lookahead", "exact")
    seeds: int = 1
    pace: Pace = field(default_factory=Pace)


def _run(names: Sequence[str], seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """The named scenarios under the named policies; where none of a kind is named, the usual ones."""
    scenarios = [name for name in names if name in SCENARIOS] or list(sizes.scenarios)
    policies = [name for name in names if name in POLICIES] or list(sizes.policies)
    make_importable()
    rows = [
        _one(scenario, policy, seed + number, progress, sizes.pace)
        for scenario in scenarios
        for policy in policies
        for number in range(sizes.seeds)
    ]
    figures = {
        f"{row['scenario']}_{row['policy']}_{key}": value
        for row in rows
        if row["seed"] == seed
        for key, value in row["fields"].items()
    }
    return Measured(figures, {"runs": rows}, tuple(_tables(rows)), notes=_notes(rows))


def _one(name: str, policy: str, seed: int, progress: Progress, pace: Pace) -> dict[str, Any]:
    scenario, folder = SCENARIOS[name], Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    progress(f"{name}, {policy}: starting machines and an engine")
    try:
        ran = run_live(scenario, policy, seed, pace, folder / "run", progress)
        fields: Verdict = judged(scenario, ran, pace)
        fields |= sim_live_gap(scenario, policy, ran, pace)
        lived = series(scenario, ran)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shown = ", ".join(f"{key} {fields[key]:.3f}" for key in ("omega", "gamma", "violations", "core_hours"))
    progress(f"{name}, {policy}: {shown}, {fields['changes']} changes")
    return {"scenario": name, "policy": policy, "seed": seed, "fields": fields, "series": lived}


def _tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    names = dict.fromkeys(row["scenario"] for row in rows)
    return [
        Table(
            f"{name}: {SCENARIOS[name].asks}",
            SHOWN,
            tuple({"policy": row["policy"], **row["fields"]} for row in rows if row["scenario"] == name),
        )
        for name in names
    ]


def _notes(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    load = max(max(row["fields"]["load_before"], row["fields"]["load_after"]) for row in rows)
    if load <= QUIET:
        return {}
    return {"load": f"up to {load:.1f} on this machine: epochs take longer than on a quiet one, for all policies alike"}


ADAPT = Benchmark(
    "adapt",
    "Engines that decide by themselves, on real Spark workers, beside other policies.",
    {name: partial(_run, (name,)) for name in (*SCENARIOS, *POLICIES)},
    Sizes(),
    Sizes(("step",), ("threshold",), pace=Pace(16.0, 2.0, 4.0, 8.0, 6.0, 180.0)),
    "*_theta *_omega *_gamma *_violations *_core_hours *_cost *_changes *_converge_s *_prediction_error "
    "*_replay_gap_throughput *_replay_gap_backlog *_replay_gap_cost *_judge_error *_money_error *_lost *_doubled "
    "*_controller_cpu *_load_after",
    plot,
    partial(_run, ()),
    own_cluster=True,
    quick=Sizes(("step",), ("static-peak", "ds2", "flink", "ce"), pace=Pace(240.0)),
    choose=_run,
)
