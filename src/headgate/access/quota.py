"""How much an owner may have on one engine, and what it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow

__all__ = ["OwnerUse", "Quota", "check_quotas", "use_by_owner"]


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that an owner may have."""

    dataflows: int = 10_000
    tasks: int = 100_000


@dataclass(frozen=True, slots=True)
class OwnerUse:
    """What an owner has."""

    dataflows: int = 0
    tasks: int = 0

    def with_dataflow(self, dataflow: Dataflow) -> OwnerUse:
        return OwnerUse(self.dataflows + 1, self.tasks + len(dataflow.tasks))


def use_by_owner(dataflows: Iterable[Dataflow]) -> dict[str, OwnerUse]:
    """What each owner of some dataflows has; tasks that are shared count for each who shares them."""
    used: dict[str, OwnerUse] = {}
    for dataflow in dataflows:
        used[dataflow.owner] = used.get(dataflow.owner, OwnerUse()).with_dataflow(dataflow)
    return used


def check_quotas(
    quotas: Mapping[str, Quota], usual: Quota, used: Mapping[str, OwnerUse], owners: Iterable[str]
) -> None:
    """Raise :class:`InputError` if some owners would have more than they may.

    >>> check_quotas({"city": Quota(dataflows=2)}, Quota(), {"city": OwnerUse(3, 9)}, ["city"])
    Traceback (most recent call last):
        ...
    headgate.errors.InputError: 'city' would have 3 dataflows, and may have 2; withdraw some, or ask an admin for more
    """
    for owner in owners:
        use, most = used.get(owner, OwnerUse()), quotas.get(owner, usual)
        for name in (field.name for field in fields(OwnerUse)):
            has, may = getattr(use, name), getattr(most, name)
            if has > may:
                message = f"'{owner}' would have {has:,} {name}, and may have {may:,}"
                facts = {"owner": owner, "quota": name, "would_have": has, "may_have": may}
                raise InputError("QUOTA_EXCEEDED", f"{message}; withdraw some, or ask an admin for more", facts)
