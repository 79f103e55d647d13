"""What the dataflows of an owner may use, whoever asks for it: its rules are those of ``headgate.toml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from headgate.access.authority import AccessRefused
from headgate.access.policy import EVERYBODY
from headgate.access.principal import AccessRole, Principal
from headgate.access.quota import Quota
from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.secret import secret_names

__all__ = ["TenantRules"]

MASK = "•••"


@dataclass(frozen=True, slots=True)
class TenantRules:
    """Rules for owners; without any, operators may use everything and others nothing that has to be granted."""

    secrets: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The owners whose dataflows may use a secret, by its name."""

    allow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What may be read and written, which hosts connected to, which modules called; ``{owner}`` is the owner's name."""

    quota: Quota = field(default_factory=Quota)
    """What each owner may have."""

    quotas: Mapping[str, Quota] = field(default_factory=dict)
    """What owners may have for whom that is different."""

    masked: tuple[str, ...] = ()
    """Columns of which only admins see values; ``*`` is any text."""

    def shown(self, principal: Principal, record: Any) -> Any:
        """A row as somebody may see it, with masked columns hidden wherever they are.

        >>> rules, olga = TenantRules(masked=("e*mail",)), Principal("olga", AccessRole.OPERATOR)
        >>> rules.shown(olga, {"id": 7, "who": [{"Email": "a@b.c"}]})
        {'id': 7, 'who': [{'Email': '•••'}]}
        """
        if not self.masked or principal.is_at_least(AccessRole.ADMIN):
            return record
        if isinstance(record, Mapping):
            return {name: MASK if self._masks(name) else self.shown(principal, one) for name, one in record.items()}
        return [self.shown(principal, one) for one in record] if isinstance(record, list) else record

    def _masks(self, column: str) -> bool:
        return any(fnmatchcase(column.casefold(), pattern.casefold()) for pattern in self.masked)

    def check(self, principal: Principal, dataflow: Dataflow) -> None:
        """Raise :class:`InputError` if a dataflow of an owner may not use what it uses, or not for so long."""
        most_s = self.quotas.get(dataflow.owner, self.quota).time_budget_s
        for each in dataflow.tasks:
            if each.time_budget_s is not None and each.time_budget_s > most_s:
                facts = {"owner": dataflow.owner, "quota": "time_budget", "task": each.id, "may_have": most_s}
                message = (
                    f"task '{each.id}' of dataflow '{dataflow.name}' has a time budget of {each.time_budget_s:g} s"
                )
                remedy = f"'{dataflow.owner}' may have {most_s:g} s; see time_budget in [quotas] of headgate.toml"
                raise InputError("QUOTA_EXCEEDED", f"{message}: {remedy}", facts)
        for task, name in _secrets_of(dataflow):
            if not self._grants_secret(principal, dataflow.owner, name):
                facts = {"owner": dataflow.owner, "dataflow": dataflow.name, "task": task, "secret": name}
                message = f"task '{task}' of dataflow '{dataflow.name}' may not use secret '{name}'"
                remedy = f"an admin may grant it to '{dataflow.owner}' in [secrets.owners] of headgate.toml"
                raise AccessRefused("NOT_ALLOWED", f"{message}: {remedy}", facts)

    def _grants_secret(self, principal: Principal, owner: str, name: str) -> bool:
        """Whether an owner has a secret; one that is granted to nobody is for operators.

        >>> rules = TenantRules({"CITY_DB": frozenset({"city"})})
        >>> ana, olga = Principal("ana", AccessRole.SUBMITTER), Principal("olga", AccessRole.OPERATOR)
        >>> rules._grants_secret(ana, "city", "CITY_DB"), rules._grants_secret(olga, "rail", "CITY_DB")
        (True, False)
        >>> rules._grants_secret(ana, "city", "OTHER"), rules._grants_secret(olga, "city", "OTHER")
        (False, True)
        """
        granted = self.secrets.get(name)
        if granted is None:
            return principal.is_at_least(AccessRole.OPERATOR)
        return owner in granted or EVERYBODY in granted


def _secrets_of(dataflow: Dataflow) -> Iterator[tuple[str, str]]:
    for task in dataflow.tasks:
        for alternate in task.alternates:
            for name in secret_names(alternate.config.text):
                yield task.id, name
