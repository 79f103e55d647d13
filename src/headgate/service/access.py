"""Who somebody is to an engine, and who may do what there, as plain values."""

from __future__ import annotations

from typing import Any

from headgate.access.authority import Verb, may
from headgate.access.policy import AccessPolicy
from headgate.access.principal import Principal
from headgate.model.table import Table, TableColumn

__all__ = ["access_facts", "access_tables", "me_facts", "me_table"]

ROLE = (TableColumn("name", "who"), TableColumn("role", "role"))
ME = (*ROLE, TableColumn("teams", "teams"), TableColumn("origin", "from"))
TEAM = (TableColumn("team", "team"), TableColumn("members", "members"))


def me_facts(who: Principal) -> dict[str, Any]:
    """Who asks, as the engine sees it."""
    verbs = [verb.value for verb in Verb if may(who, verb)]
    return {
        "name": who.name,
        "role": who.role.value,
        "teams": sorted(who.teams),
        "origin": who.origin,
        "may_to_all": verbs,
    }


def access_facts(policy: AccessPolicy) -> dict[str, Any]:
    """The policy: roles and teams."""
    roles = [{"name": name, "role": role.value} for name, role in sorted(policy.roles.items())]
    teams = [{"team": team, "members": sorted(members)} for team, members in sorted(policy.teams.items())]
    return {"roles": roles, "teams": teams}


def me_table(answer: dict[str, Any]) -> Table:
    """Who asks, as a table."""
    return Table("You", ME, ({**answer, "teams": ", ".join(answer["teams"])},))


def access_tables(answer: dict[str, Any]) -> tuple[Table, ...]:
    """The policy as tables."""
    note = "Who runs the engine, and root, are its admins. Everybody owns what carries their own name."
    teams = tuple({**team, "members": ", ".join(team["members"])} for team in answer["teams"])
    return Table("Roles", ROLE, tuple(answer["roles"]), (note,)), Table("Teams", TEAM, teams)
