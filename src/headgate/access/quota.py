"""How much an owner may have on one engine, and what it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow

__all__ = ["OwnerUse", "Quota", "check_quotas", "over_quota", "use_by_owner"]


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that an owner may have; ``None`` is no limit."""

    dataflows: int = 10_000
    tasks: int = 100_000
    sources: int = 500
    """Different sources: each is a query of Spark, with threads and a place where it remembers how far it is."""

    time_budget_s: float = 3_600.0
    """The longest time budget that its tasks may have: neighbours may wait for so long."""

    rows_per_s: float | None = None
    """Rows that its sources take; its own sources are throttled to that."""

    cores: float | None = None
    """Cores that its tasks keep busy."""

    kept_bytes: int | None = None
    """State and checkpoints of the fragments that it uses."""

    price_per_day: float | None = None
    """What it pays for machines in 24 hours."""


@dataclass(frozen=True, slots=True)
class OwnerUse:
    """What an owner has; what is measured is that of the last minute, and of the last day."""

    dataflows: int = 0
    tasks: int = 0
    sources: int = 0
    rows_per_s: float = 0.0
    cores: float = 0.0
    kept_bytes: int = 0
    price_per_day: float = 0.0


SAID = {
    "dataflows": "would have {:,} dataflows, and may have {:,}",
    "tasks": "would have {:,} tasks, and may have {:,}",
    "sources": "would have {:,} sources, and may have {:,}",
    "rows_per_s": "takes {:,.0f} rows/s, and may take {:,.0f}",
    "cores": "keeps {:.2f} cores busy, and may keep {:.2f}",
    "kept_bytes": "has {:,} bytes of state and files, and may have {:,}",
    "price_per_day": "has paid {:.2f} for machines in 24 hours, and may pay {:.2f}",
}


def use_by_owner(dataflows: Iterable[Dataflow], measured: Mapping[str, OwnerUse] | None = None) -> dict[str, OwnerUse]:
    """What each owner of some dataflows has; tasks that are shared count for each who shares them."""
    used = {owner: replace(use, dataflows=0, tasks=0, sources=0) for owner, use in (measured or {}).items()}
    sources: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for flow in dataflows:
        use, its = used.get(flow.owner, OwnerUse()), sources[flow.owner]
        fed = {stream.target for stream in flow.streams}
        its |= {(one.type, one.config.text) for task in flow.tasks if task.id not in fed for one in task.alternates}
        used[flow.owner] = replace(
            use, dataflows=use.dataflows + 1, tasks=use.tasks + len(flow.tasks), sources=len(its)
        )
    return used


def check_quotas(
    quotas: Mapping[str, Quota], usual: Quota, used: Mapping[str, OwnerUse], owners: Iterable[str]
) -> None:
    """Raise :class:`InputError` if some owners would have more than they may, or have it already.

    >>> check_quotas({"city": Quota(dataflows=2)}, Quota(), {"city": OwnerUse(3, 9, 1)}, ["city"])
    Traceback (most recent call last):
        ...
    headgate.errors.InputError: 'city' would have 3 dataflows, and may have 2; withdraw some, or ask an admin for more
    >>> check_quotas({}, Quota(cores=0.5), {"city": OwnerUse(1, 3, 1, cores=0.75)}, ["city"])
    Traceback (most recent call last):
        ...
    headgate.errors.InputError: 'city' keeps 0.75 cores busy, and may keep 0.50; withdraw some, or ask an admin for more
    """
    for owner in owners:
        for name, has, may in _beyond(used.get(owner, OwnerUse()), quotas.get(owner, usual)):
            message = f"'{owner}' {SAID[name].format(has, may)}"
            facts = {"owner": owner, "quota": name, "would_have": has, "may_have": may}
            raise InputError("QUOTA_EXCEEDED", f"{message}; withdraw some, or ask an admin for more", facts)


def over_quota(quotas: Mapping[str, Quota], usual: Quota, used: Mapping[str, OwnerUse]) -> list[str]:
    """Who has more than they may, as sentences.

    >>> over_quota({"city": Quota(rows_per_s=50_000)}, Quota(), {"city": OwnerUse(rows_per_s=61_200.0)})
    ["'city' takes 61,200 rows/s, and may take 50,000."]
    """
    return [
        f"'{owner}' {SAID[name].format(has, may)}."
        for owner, use in sorted(used.items())
        for name, has, may in _beyond(use, quotas.get(owner, usual))
    ]


def _beyond(use: OwnerUse, most: Quota) -> Iterator[tuple[str, float, float]]:
    for name in (field.name for field in fields(OwnerUse)):
        has, may = getattr(use, name), getattr(most, name)
        if may is not None and has > may:
            yield name, has, may
