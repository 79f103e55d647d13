"""Metering: what of the machines a running plan uses, and for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from headgate.billing.journal import BilledMachine, Usage
from headgate.billing.usage import Customer
from headgate.model.dataflow import Dataflow
from headgate.runtime.compile.plan import CompiledPlan

__all__ = ["PRICE_PER_H", "usage_of"]

PRICE_PER_H = Decimal("0.10")
"""What this machine costs an hour if nobody says otherwise."""


def usage_of(plan: CompiledPlan, dataflows: Iterable[Dataflow], price_per_h: Decimal) -> Usage:
    """This machine, with every task of a plan at work on it; a dataflow counts as many tasks as its author wrote."""
    tasks = Counter(task.users for task in plan.tasks.values())
    customers = tuple(Customer(flow.name, flow.owner, len(flow.tasks)) for flow in dataflows)
    return Usage((BilledMachine("local", price_per_h, dict(tasks)),), customers)
