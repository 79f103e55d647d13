"""The one place where it is decided who may do what. What is not allowed here is refused.

======== ========================================================== ============ =====================
verb     what it is                                                 least role   of another team's
======== ========================================================== ============ =====================
read     names, states, rates                                       viewer       yes
inspect  documents, rows that failed, bills                         viewer       from operator on
submit   make a dataflow run for an owner                           submitter    from operator on
change   replace, withdraw, pause, resume, limit, switch            submitter    from operator on
operate  machines, placement, what concerns the engine as a whole   operator     yes
audit    read who did what                                          admin        yes
grant    make and revoke tokens                                     admin        yes
======== ========================================================== ============ =====================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from headgate.access.principal import AccessRole, Principal
from headgate.errors import InputError

__all__ = ["ENGINE", "LEAST_ROLES", "AccessObject", "AccessRefused", "Verb", "check_access", "may"]


class Verb(StrEnum):
    """What somebody asks for."""

    READ = "read"
    INSPECT = "inspect"
    SUBMIT = "submit"
    CHANGE = "change"
    OPERATE = "operate"
    AUDIT = "audit"
    GRANT = "grant"


LEAST_ROLES = {
    Verb.READ: AccessRole.VIEWER,
    Verb.INSPECT: AccessRole.VIEWER,
    Verb.SUBMIT: AccessRole.SUBMITTER,
    Verb.CHANGE: AccessRole.SUBMITTER,
    Verb.OPERATE: AccessRole.OPERATOR,
    Verb.AUDIT: AccessRole.ADMIN,
    Verb.GRANT: AccessRole.ADMIN,
}
OWNERS_ONLY = (Verb.INSPECT, Verb.SUBMIT, Verb.CHANGE)


@dataclass(frozen=True, slots=True)
class AccessObject:
    """What a request is about: a dataflow, or all of an owner's, or the engine if nobody owns it."""

    owner: str | None = None
    dataflow: str | None = None

    def __str__(self) -> str:
        if self.dataflow is not None:
            return f"dataflow '{self.dataflow}' of '{self.owner}'"
        return "the engine" if self.owner is None else f"what '{self.owner}' owns"


ENGINE = AccessObject()


class AccessRefused(InputError):
    """Somebody asked for what they may not do; nothing has changed."""


def may(principal: Principal, verb: Verb, what: AccessObject = ENGINE) -> bool:
    """Whether somebody may do something.

    >>> ana = Principal("ana", AccessRole.SUBMITTER, frozenset({"city"}))
    >>> may(ana, Verb.CHANGE, AccessObject("city", "alarms")), may(ana, Verb.CHANGE, AccessObject("rail", "delays"))
    (True, False)
    >>> may(ana, Verb.OPERATE), may(Principal("ben"), Verb.READ)
    (False, False)
    """
    if not principal.is_at_least(LEAST_ROLES[verb]):
        return False
    if verb not in OWNERS_ONLY or what.owner is None:
        return verb not in OWNERS_ONLY or principal.is_at_least(AccessRole.OPERATOR)
    return what.owner in principal.teams or principal.is_at_least(AccessRole.OPERATOR)


def check_access(principal: Principal, verb: Verb, *objects: AccessObject) -> None:
    """Raise :class:`AccessRefused` unless somebody may do something to all of some objects.

    >>> ana = Principal("ana", AccessRole.SUBMITTER, frozenset({"city"}))
    >>> check_access(ana, Verb.CHANGE, AccessObject("rail", "delays"))
    Traceback (most recent call last):
        ...
    headgate.access.authority.AccessRefused: 'ana' may not change dataflow 'delays' of 'rail': only members of ...
    """
    for what in objects or (ENGINE,):
        if not may(principal, verb, what):
            facts = {"principal": principal.name, "verb": verb.value, "owner": what.owner, "dataflow": what.dataflow}
            message = f"'{principal.name}' may not {verb} {what}: {_reason(principal, verb, what)}"
            raise AccessRefused("NOT_ALLOWED", message, facts)


def _reason(principal: Principal, verb: Verb, what: AccessObject) -> str:
    least = LEAST_ROLES[verb]
    if not principal.is_at_least(least):
        return f"that takes the role {least}, and this one's is {principal.role}; see [access] in headgate.toml"
    return f"only members of '{what.owner}' and operators may; this one {_membership(principal.teams)}"


def _membership(teams: Iterable[str]) -> str:
    named = ", ".join(f"'{team}'" for team in sorted(teams)[:12])
    return f"is a member of {named}" if named else "is a member of no team"
