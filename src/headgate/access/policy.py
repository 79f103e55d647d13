"""Who has which role and who belongs to which team, as the table ``[access]`` of ``headgate.toml`` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.access.principal import AccessRole, Principal

__all__ = ["EVERYBODY", "AccessPolicy"]

EVERYBODY = "*"
"""Stands for all who have no role of their own."""


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Roles by name, and the members of teams. Without any, only who runs the engine may use it.

    >>> policy = AccessPolicy({"ana": AccessRole.SUBMITTER, "*": AccessRole.VIEWER}, {"city": frozenset({"ana"})})
    >>> ana = policy.principal("ana")
    >>> ana.role.value, sorted(ana.teams), policy.principal("ben").role.value
    ('submitter', ['ana', 'city'], 'viewer')
    >>> AccessPolicy().principal("ana").role.value, AccessPolicy().principal("ana", runs_engine=True).role.value
    ('none', 'admin')
    """

    roles: Mapping[str, AccessRole] = field(default_factory=dict)
    teams: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def principal(self, name: str, *, runs_engine: bool = False, origin: str = "") -> Principal:
        """Somebody who has been authenticated; who runs the engine, or is root, is its admin whatever the file says.

        Everybody owns what has their own name as its owner, unless a team is called so.
        """
        role = AccessRole.ADMIN if runs_engine else self.roles.get(name, self.roles.get(EVERYBODY, AccessRole.NONE))
        teams = {team for team, members in self.teams.items() if name in members}
        return Principal(name, role, frozenset(teams if name in self.teams else {*teams, name}), origin)
