"""Simulated runs as tables, and as a page with pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from headgate.model.table import Table, TableColumn
from headgate.planning.programs.hindsight import Hindsight
from headgate.report.page import html_page
from headgate.report.render import render
from headgate.report.runs import draw_runs
from headgate.service.hindsight import Regret
from headgate.service.pool_tables import pool_tables
from headgate.simulation.replay import Gap
from headgate.simulation.run import Run

__all__ = [
    "gap_table",
    "hindsight_table",
    "ledger_table",
    "plans_table",
    "reasons_table",
    "run_tables",
    "series_table",
    "simulation_page",
]

SHOWN = {
    "omega": "Ω",
    "within": "in time",
    "gamma": "Γ",
    "cost": "cost",
    "theta": "Θ",
    "core_hours": "core hours",
    "changes_per_day": "changes per day",
    "left_band": "χ",
    "backlog": "backlog",
}
FORMS = {"within": ".1%", "backlog": ",.0f", "left_band": ",.4g", "core_hours": ",.4g"}
_POLICY = TableColumn("policy", "policy")
_SETTING = tuple(
    TableColumn(name, name.replace("_s", ""), "s" if name.endswith("_s") else "", "g" if "seed" not in name else "")
    for name in ("dataflow", "tasks", "cloud", "machines", "hours", "interval_s", "replications", "seed")
)
_HINDSIGHT = (
    _POLICY,
    TableColumn("profit", "Γ - σμ", form=".4f"),
    TableColumn("regret", "regret", form=".4f"),
    TableColumn("hindsight_ratio", "ratio", form=".3f"),
    TableColumn("theta_ratio", "ratio of Θ", form=".3f"),
    TableColumn("meets", "meets throughput"),
)
_SERIES = ("hours", "omega", "gamma", "mu", "theta", "input_per_s", "output_per_s", "cores")
_LEDGER = ("replication", "machine", "vm_class", "acquired_s", "released_s", "periods", "cost", "interrupted")
_PLANS = (
    _POLICY,
    TableColumn("hours", "decided at", "h", ".2f"),
    TableColumn("in_s", "due in", "s", "g"),
    TableColumn("replication"),
    TableColumn("task", "task"),
    TableColumn("change", "change"),
    TableColumn("machine", "machine"),
)
_REASONS = (
    _POLICY,
    TableColumn("hours", "at", "h", ".2f"),
    TableColumn("at_s"),
    TableColumn("replication"),
    TableColumn("reason", "reason"),
)


def run_tables(runs: Sequence[Run]) -> tuple[Table, Table]:
    """The setting, and a row for each policy: means over the replications, with their 95 % intervals for programs."""
    totals = [run.totals() for run in runs]
    names = [*SHOWN, *(name for name in totals[0] if name not in SHOWN)]
    columns = tuple(TableColumn(name, SHOWN.get(name, ""), form=FORMS.get(name, ".4g")) for name in names)
    rows = tuple({"policy": run.policy, **each} for run, each in zip(runs, totals, strict=True))
    notes = (
        "Ω: relative throughput; in time: intervals within the service level; Γ: value; Θ: profit.",
        "χ: intervals in which Ω was outside of its band.",
    )
    setting = runs[0].setting
    world = {
        "dataflow": setting.dataflow.name,
        "tasks": len(runs[0].tasks),
        "cloud": setting.cloud.name,
        "machines": setting.pool.source,
        "hours": setting.hours,
        "interval_s": setting.interval_s,
        "replications": setting.replications,
        "seed": setting.seed,
    }
    return Table("Setting", _SETTING, (world,)), Table("Policies", (_POLICY, *columns), rows, notes)


def hindsight_table(bound: Hindsight, regrets: Sequence[Regret]) -> Table:
    """How near each policy came to the best that was possible."""
    best = f"Γ - σμ = {bound.bound:.4f} (Θ = {bound.theta(bound.bound):.4f})"
    return Table.of("Hindsight", _HINDSIGHT, regrets, f"No policy that meets the throughput can exceed {best}.")


def reasons_table(runs: Sequence[Run], all_replications: bool) -> Table:
    """Why each decision was taken, in the first replication or in all of them."""
    rows = tuple(
        {"policy": run.policy, "hours": each.at_s / 3_600, **asdict(each)}
        for run in runs
        for each in run.reasons
        if all_replications or each.replication == 0
    )
    silent = [run.policy for run in runs if not run.reasons]
    notes = (f"No decisions recorded: {', '.join(silent)}.",) if silent else ()
    return Table("Reasons", _REASONS, rows, notes)


def plans_table(runs: Sequence[Run], all_replications: bool) -> Table:
    """The plan of every decision, step by step; what is due later was planned again at the next decision."""
    rows = tuple(
        {"policy": run.policy, "hours": each.at_s / 3_600, "replication": each.replication, **asdict(each.action)}
        for run in runs
        for each in run.plans
        if all_replications or each.replication == 0
    )
    return Table("Plans", _PLANS, rows)


def series_table(runs: Sequence[Run]) -> Table:
    """A row for each policy with a list for each figure: its mean over the replications at the end of each interval."""
    rows = []
    for run in runs:
        values = {name: getattr(run, name) for name in _SERIES} | {"backlog": run.queues.sum(axis=2)}
        means = {name: None if v is None else v.reshape(len(v), -1).mean(axis=1).tolist() for name, v in values.items()}
        rows.append({"policy": run.policy, **means})
    return Table("Series", (_POLICY, *map(TableColumn, (*_SERIES, "backlog"))), tuple(rows))


def ledger_table(runs: Sequence[Run]) -> Table:
    """Every machine that was paid for, and what it cost."""
    rows = tuple({"policy": run.policy, **asdict(each)} for run in runs for each in run.machines)
    return Table("Ledger", (_POLICY, *map(TableColumn, _LEDGER)), rows)


def gap_table(gap: Gap) -> Table:
    """How far the simulation of a live run is from the run itself."""
    columns = tuple(TableColumn(name, f"{name} off by", form=".1%") for name in ("throughput", "backlog"))
    return Table.of("Live run", (*columns, TableColumn("spark_gap")), [gap])


def simulation_page(runs: Sequence[Run]) -> str:
    """Tables and pictures as one page of HTML."""
    setting = runs[0].setting
    rates = Table(
        "Rates",
        (TableColumn("source", "source"), TableColumn("rate", "rate")),
        tuple({"source": name, "rate": _rate_text(rate)} for name, rate in setting.rates.items()),
    )
    waiting = Table(
        "Messages waiting at the end",
        (TableColumn("task", "task"), *(TableColumn(run.policy, run.policy, form=",.4g") for run in runs)),
        tuple(
            {"task": task, **{run.policy: float(run.queues[-1, :, place].mean()) for run in runs}}
            for place, task in enumerate(runs[0].tasks)
        ),
    )
    world, policies = run_tables(runs)
    pools = pool_tables(runs)
    sections: list[tuple[str, str | bytes]] = [
        ("Setting", render([world, rates], "html")),
        ("Results", render([policies, *pools], "html")),
        ("Over time", draw_runs(runs, ".svg")),
        ("Backlog", render([waiting], "html")),
    ]
    return html_page(f"{setting.dataflow.name}, simulated", sections, "Means over the replications.")


def _rate_text(rate: object) -> str:
    text = repr(rate)
    return text if len(text) < 200 else text[:197] + "..."
