"""Part ``targets``: five applications, three targets each; prediction against simulation; packers side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from headgate.errors import Infeasible
from headgate.model.table import Table
from headgate.planning.placing.items import InstanceItems
from headgate.planning.placing.parallelism import Bound, Parallelism, parallelism_of
from headgate.planning.placing.placement import PackingProblem
from headgate.planning.placing.spreading import Metis
from headgate_benchmarks.deploy.applications import Application
from headgate_benchmarks.deploy.running import CLOUD, FINER, PAPER, Deployed, deployed, loop_for, planned
from headgate_benchmarks.study import Conclusion, Row, columns

__all__ = ["PACKED", "conclude_targets", "metis_as_printed", "target_trials"]

PACKED = ("first-fit", "metis", "r-storm", "round-robin", "exact")


def _predictions(deployed_one: Deployed) -> dict[str, Any]:
    """How far predictions are from what was simulated: CPU of each machine, and throughput that can be sustained."""
    outcome, plan = deployed_one.outcome, deployed_one.plan
    last = next(each for each in reversed(outcome.attempts) if each.plan is plan)
    off = [
        abs(site.cpu - used) / used for site in plan.placement.sites if (used := last.seen.cpu_by_site[site.name]) > 0
    ]
    sustained = deployed_one.world.sustained_per_s(plan)
    return {"cpu_off": off, "throughput_off": abs(plan.sustained_per_s - sustained) / sustained, "sustained": sustained}


def target_trials(application: Application, rate: float, seed: int, exact_s: float) -> Iterator[Row]:
    """The loop as we run it, and every packer on the same instances."""
    one = deployed(application, rate, seed)
    outcome = one.outcome
    row: Row = {"application": application.name, "rate": rate, "reached": outcome.reached, "sentence": outcome.sentence}
    row |= {"iterations": len(outcome.attempts), "machines": one.plan.placement.machines}
    row |= {"planning_s": max(each.plan.took_s for each in outcome.attempts), **_predictions(one)}
    row["packed"] = {}
    for name in PACKED:
        began = time.perf_counter()
        try:
            plan = planned(application, rate, name, replace(PAPER, time_limit_s=exact_s))
        except Infeasible:
            row["packed"][name] = None
            continue
        row["packed"][name] = plan.placement.machines
        row[f"{name}_s"] = time.perf_counter() - began
        row[f"{name}_across"] = plan.placement.across_per_s
        if name == "exact":
            proven = (
                plan.placement.bound is not None and plan.placement.bound > float(plan.placement.price_per_h) - 0.11
            )
            row["exact_proven"] = proven
            row["instances"] = int(plan.items.count.sum())
    row["finer"] = planned(application, rate, "first-fit", FINER).placement.machines
    row["metis_printed"] = metis_as_printed(application, rate)
    yield row


def metis_as_printed(application: Application, rate: float, most: int = 40) -> int | None:
    """Machines of the Metis scheduler as the paper runs it: as many instances of each operator as machines, five
    times as many of those that wait; the fewest machines on which none is overloaded and all keep up."""
    deploying = loop_for(application, rate, PAPER)
    loads = deploying.load(deploying.knowledge.planned())
    needed = parallelism_of(loads, CLOUD.classes)
    for machines in range(1, most + 1):
        copies = [machines * (5 if each.kind is Bound.SOJOURN else 1) for each in needed]
        enough = all(
            count >= max(each.asked[Bound.CPU], each.asked[Bound.SOJOURN]) - 1e-9
            for count, each in zip(copies, needed, strict=True)
        )
        if not enough:
            continue
        counted = [Parallelism(e.task, n, e.bound, e.kind, e.asked) for e, n in zip(needed, copies, strict=True)]
        problem = PackingProblem(InstanceItems.of(loads, counted), CLOUD.classes)
        bins = [problem.new_bin(CLOUD.classes[0], number + 1) for number in range(machines)]
        parts = Metis().spread(problem, machines)
        if all(problem.fits(one, on) for one, on in zip(bins, parts, strict=True)):
            return machines
    return None


def _fewer(rows: Sequence[Row], other: str) -> tuple[int, int]:
    """On how many rows first-fit needs fewer machines than another packer, or that has no answer; on how many more."""
    pairs = [(row["packed"]["first-fit"], row["packed"][other]) for row in rows]
    return sum(b is None or a < b for a, b in pairs), sum(b is not None and a > b for a, b in pairs)


def conclude_targets(rows: Sequence[Row]) -> Conclusion:
    """The figures of issue and paper."""
    conclusion, figures = Conclusion(), dict[str, Any]()
    reached = [row for row in rows if row["reached"]]
    figures["reached"] = len(reached)
    figures["targets"] = len(rows)
    figures["iterations_median"] = float(statistics.median(row["iterations"] for row in rows))
    figures["iterations_max"] = max(row["iterations"] for row in rows)
    figures["planning_s_max"] = max(row["planning_s"] for row in rows)
    figures["cpu_off_p50"] = statistics.median(off for row in rows for off in row["cpu_off"])
    figures["throughput_off_p50"] = statistics.median(row["throughput_off"] for row in rows)
    figures["throughput_off_max"] = max(row["throughput_off"] for row in rows)
    for other in ("metis", "r-storm", "round-robin"):
        name = other.replace("-", "_")
        figures[f"fewer_than_{name}"], figures[f"more_than_{name}"] = _fewer(rows, other)
    judged = [row for row in rows if row["packed"]["exact"] and row.get("exact_proven")]
    figures["exact_proven"] = len(judged)
    figures["above_exact_max"] = max((row["packed"]["first-fit"] - row["packed"]["exact"] for row in judged), default=0)
    printed = [(row["packed"]["first-fit"], row["metis_printed"]) for row in rows]
    figures["fewer_than_metis_printed"] = sum(b is None or a < b for a, b in printed)
    figures["more_than_metis_printed"] = sum(b is not None and a > b for a, b in printed)
    finer = [(row["finer"], row["metis_printed"]) for row in rows]
    figures["finer_more_than_metis_printed"] = sum(b is not None and a > b for a, b in finer)
    figures["finer_saves"] = sum(row["packed"]["first-fit"] - row["finer"] for row in rows)
    conclusion.figures = figures
    few = f"{figures['fewer_than_metis_printed']} of {len(rows)} targets, more on {figures['more_than_metis_printed']}"
    conclusion.find(
        "fig12_fewer_machines",
        figures["more_than_metis_printed"] == 0 and figures["fewer_than_metis_printed"] >= len(rows) / 2,
        f"Fig. 12: fewer machines than the Metis scheduler on {few}; with finer instances (ours) more on "
        f"{figures['finer_more_than_metis_printed']}",
    )
    conclusion.find(
        "within_one_of_exact",
        figures["above_exact_max"] <= 1,
        f"first-fit is at most {figures['above_exact_max']} machines above the proven optimum ({len(judged)} proven)",
    )
    shown = columns(
        ("application", "application"), ("rate", "target", "rows/s", ",.0f"), ("reached", "reached"),
        ("iterations", "iterations"), ("machines", "machines"), ("finer", "finer"), ("first-fit", "first-fit"),
        ("exact", "exact"), ("metis", "metis"), ("metis_printed", "metis, as printed"), ("r-storm", "r-storm"),
        ("round-robin", "round robin"), ("planning_s", "planning", "s", ".3f"),
    )  # fmt: skip
    listed = tuple({**row, **row["packed"]} for row in rows)
    conclusion.tables = (
        Table(
            "Targets",
            shown,
            listed,
            (
                "reached, iterations, machines: in a simulated cloud, with 15 % of CPU left free.",
                "first-fit to round robin: on the same instances. finer: first-fit on smaller instances (ours).",
            ),
        ),
    )
    return conclusion
