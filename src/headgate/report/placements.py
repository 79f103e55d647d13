"""Pictures of deployments: machines with what is on them, what each iteration reached, and costs against rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headgate.adaptation.deploying.loop import Attempt
from headgate.planning.placing.deployment_plan import DeploymentPlan, DeployTarget
from headgate.report.figures import SHADES, figure_bytes

__all__ = ["draw_costs", "draw_deployment"]

MOST_NAMED = 40


def draw_deployment(
    plan: DeploymentPlan, attempts: Sequence[Attempt], target: DeployTarget, title: str, ending: str
) -> bytes:
    """CPU of every machine by operator, predicted and measured; and throughput and latency by iteration."""
    machines = len(plan.placement.sites)
    height = 1.6 + 0.3 * min(machines, MOST_NAMED)
    measured = next((each for each in reversed(attempts) if each.plan is plan), None)

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2, width_ratios=(2, 1)) if attempts else [figure.subplots()]
        _machines(panels[0], plan, {} if measured is None else measured.seen.cpu_by_site, title)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=7)
        if attempts:
            _iterations(panels[1], attempts, target)

    return figure_bytes(draw, ending, (11.0 if attempts else 8.0, max(height, 3.6)))


def _machines(axes: Any, plan: DeploymentPlan, used: Mapping[str, float], title: str) -> None:
    sites = plan.placement.sites
    names = plan.items.names
    places = np.arange(len(sites))
    left = np.array([site.others_cpu for site in sites])
    if left.any():
        axes.barh(places, left, color="#e2e8f0", label="others")
    for number, name in enumerate(names):
        cores = np.array([plan.items.cpu_by_operator(plan.counts(site))[number] for site in sites])
        axes.barh(places, cores, left=left, color=SHADES[number % len(SHADES)], label=name, alpha=_alpha(number))
        for place, (width, start, site) in enumerate(zip(cores, left, sites, strict=True)):
            count = site.instances.get(name, 0)
            if count > 1 and width > 0.08 * site.capacity:
                axes.text(start + width / 2, place, f"{count}", ha="center", va="center", fontsize=7, color="white")
        left = left + cores
    powers = [plan.classes[site.vm_class].power for site in sites]
    axes.plot(powers, places, "|", color="black", markersize=12, label="all cores")
    if used:
        cpu = [used.get(site.name, np.nan) + site.others_cpu for site in sites]
        axes.plot(cpu, places, "D", color="white", markeredgecolor="black", markersize=5, label="measured")
    if len(sites) <= MOST_NAMED:
        axes.set_yticks(places, [f"{site.name} {site.vm_class}" for site in sites])
    axes.invert_yaxis()
    axes.set(xlabel="CPU (reference cores)")
    axes.set_title(f"{title}: {len(sites)} machines, {plan.placement.across_per_s:,.0f} rows/s between them")


def _alpha(number: int) -> float:
    """Shades come again in a lighter tone."""
    return 1.0 if number < len(SHADES) else 0.55


def _iterations(axes: Any, attempts: Sequence[Attempt], target: DeployTarget) -> None:
    axes.boxplot([each.seen.throughput_per_s for each in attempts], widths=0.5)
    axes.axhline(target.rate_per_s, color="#c2410c", linewidth=1, linestyle=":", label="target")
    axes.set_ylim(0, None)
    axes.set(xlabel="iteration", ylabel="rows/s")
    axes.set_title("throughput")
    for number, each in enumerate(attempts, start=1):
        machines = each.plan.placement.machines
        text = f"{machines} m, {each.seen.mean_latency_s * 1_000:,.0f} ms"
        axes.annotate(text, (number, 0), (0, 4), textcoords="offset points", ha="center", fontsize=7)
    axes.grid(visible=True, axis="y")
    axes.legend(loc="lower right")


def draw_costs(costs: Mapping[str, Sequence[tuple[float, float]]], ending: str) -> bytes:
    """CPU of a row against the rate at which rows came, a mark for each interval."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for number, (name, points) in enumerate(sorted(costs.items())):
            rates, cpu = zip(*points, strict=True)
            axes.plot(rates, [1e6 * each for each in cpu], ".", color=SHADES[number % len(SHADES)], label=name)
        axes.set(xlabel="rows/s", ylabel="CPU of a row (µs)")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title("what a row costs, by the rate at which rows come")
        axes.grid(visible=True)
        axes.legend()

    return figure_bytes(draw, ending, (7.5, 4.6))
