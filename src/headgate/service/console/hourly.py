"""What dataflows pay for an hour of what runs now, as the bill would have it: by dataflow, task and sharer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from headgate.billing.attribution import attribute
from headgate.billing.usage import Customer, Interval, Prices, VmUsage, WorkerUsage
from headgate.model.names import DataflowName
from headgate.sharing.running import RunningSet
from headgate.store.entries import UsageChanged
from headgate.store.journal import Journal

__all__ = ["HourlyCosts", "MachinePrice", "hourly_costs", "machine_prices", "users_of_tasks"]

HOUR_S = 3600
WHOLE_MACHINE = 1_000_000


@dataclass(frozen=True, slots=True)
class MachinePrice:
    """A machine that is paid for."""

    name: str
    price_per_h: Decimal


@dataclass(frozen=True, slots=True)
class HourlyCosts:
    """An hour: what each dataflow pays and would pay alone; the dataflows and ``idle`` add up to ``total``."""

    paid: Mapping[str, float]
    alone: Mapping[str, float]
    idle: float
    total: float
    currency: str


def machine_prices(journal: Journal) -> tuple[list[MachinePrice], str]:
    """The machines that are paid for now, and the currency; none while no engine runs."""
    entry = journal.latest(UsageChanged)
    if entry is None or entry.usage is None:
        return [], "USD"
    machines = [MachinePrice(one["name"], Decimal(one["price_per_h"])) for one in entry.usage["machines"]]
    return machines, str(entry.usage["currency"])


def users_of_tasks(running: RunningSet, paused: Collection[str]) -> Counter[tuple[DataflowName, ...]]:
    """How many tasks have each set of users; what only paused dataflows use does not count."""
    users = (tuple(sorted(n for n in used.users if n not in paused)) for used in running.tasks.values())
    return Counter(names for names in users if names)


def hourly_costs(
    tasks: Mapping[tuple[DataflowName, ...], int],
    customers: Iterable[Customer],
    machines: Iterable[MachinePrice],
    currency: str = "USD",
) -> HourlyCosts:
    """Attribute an hour of some machines, each of which runs all the tasks, as the bill does."""
    used: dict[str, tuple[DataflowName, ...]] = {}
    for users, count in tasks.items():
        used |= {f"{len(used) + number}": users for number in range(count)}
    workers = (WorkerUsage(used),) if used else ()
    priced = list(machines)
    hour = Interval(
        datetime(2000, 1, 1, tzinfo=UTC), HOUR_S, tuple(VmUsage(one.name, one.price_per_h, workers) for one in priced)
    )
    shares = attribute([hour])
    price = max((one.price_per_h for one in priced), default=Decimal())
    prices = Prices(price, tasks_per_worker=WHOLE_MACHINE)
    return HourlyCosts(
        {str(name): float(share) for name, share in shares.shares.items()},
        {str(customer.dataflow): float(prices.alone_per_h(customer.tasks)) for customer in customers},
        float(shares.idle),
        float(shares.total),
        currency,
    )
