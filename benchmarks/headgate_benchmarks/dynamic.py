"""The dynamic dataflows of DYN and PLAN-AHEAD, from examples/simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from headgate.documents import parse
from headgate.model.cluster.catalogues import catalogue
from headgate.model.dataflow import Dataflow
from headgate.simulation.rates import ArrivalRate
from headgate.simulation.setting import Setting
from headgate.simulation.variability import EC2
from headgate_benchmarks.checkout import example

__all__ = ["linear_road", "ten_stages", "varying_setting"]


def _read(name: str) -> Dataflow:
    return parse(example(f"simulation/{name}.yaml").read_text(encoding="utf-8"), "yaml").dataflow


def linear_road(rate_per_s: float = 50.0) -> Dataflow:
    """Linear Road, with DYN's break-even costs for a rate: a tenth of a dollar an hour for each message a second.

    >>> linear_road(8_000.0).service_level.break_even_at_best_per_h
    Decimal('800')
    """
    flow = _read("linear_road")
    best = Decimal(round(rate_per_s)) / 10
    level = replace(flow.service_level, break_even_at_best_per_h=best, break_even_at_worst_per_h=best / 2)
    return replace(flow, service_level=level)


def ten_stages() -> Dataflow:
    """Ten stages of three tasks, with 45 alternates.

    >>> sum(len(task.alternates) for task in ten_stages().tasks)
    45
    """
    return _read("ten_stages")


def varying_setting(
    dataflow: Dataflow,
    rates: Mapping[str, ArrivalRate],
    hours: float,
    interval_s: float,
    seed: int = 1,
    replications: int = 1,
) -> Setting:
    """On the papers' machines, which vary as EC2's did."""
    intervals = round(hours * 3_600 / interval_s)
    return Setting(dataflow, catalogue("ec2-2013"), rates, intervals, interval_s, EC2.pool(seed), replications, seed)
