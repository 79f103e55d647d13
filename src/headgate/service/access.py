"""Who somebody is to an engine, and who may do what there, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from headgate.access.authority import Verb, may
from headgate.access.policy import AccessPolicy
from headgate.access.principal import Principal
from headgate.access.quota import OwnerUse, use_by_owner
from headgate.access.rules import TenantRules
from headgate.model.dataflow import Dataflow
from headgate.model.table import Table, TableColumn

__all__ = ["access_facts", "access_tables", "me_facts", "me_table"]

ROLE = (TableColumn("name", "who"), TableColumn("role", "role"))
ME = (*ROLE, TableColumn("teams", "teams"), TableColumn("origin", "from"))
QUOTA = (
    TableColumn("owner", "owner"),
    TableColumn("dataflows", "dataflows"),
    TableColumn("tasks", "tasks"),
    TableColumn("sources", "sources"),
    TableColumn("rows_per_s", "rows/s"),
    TableColumn("cores", "cores"),
    TableColumn("kept_bytes", "MB kept"),
    TableColumn("price_per_day", "cost/day"),
)
FORMS = {
    "dataflows": ("{:,.0f}", 1),
    "tasks": ("{:,.0f}", 1),
    "sources": ("{:,.0f}", 1),
    "rows_per_s": ("{:,.0f}", 1),
    "cores": ("{:.2f}", 1),
    "kept_bytes": ("{:,.1f}", 1_000_000),
    "price_per_day": ("{:.2f}", 1),
}
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


def access_facts(
    policy: AccessPolicy,
    rules: TenantRules,
    dataflows: Iterable[Dataflow],
    measured: Mapping[str, OwnerUse] | None = None,
) -> dict[str, Any]:
    """The policy: roles and teams; and what owners have, of what they may have."""
    roles = [{"name": name, "role": role.value} for name, role in sorted(policy.roles.items())]
    teams = [{"team": team, "members": sorted(members)} for team, members in sorted(policy.teams.items())]
    used = use_by_owner(dataflows, measured)
    quotas = [_quota_facts(owner, rules, used) for owner in sorted({*used, *rules.quotas})]
    return {"roles": roles, "teams": teams, "quotas": quotas}


def _quota_facts(owner: str, rules: TenantRules, used: Mapping[str, OwnerUse]) -> dict[str, Any]:
    use, most = used.get(owner, OwnerUse()), rules.quotas.get(owner, rules.quota)
    return {
        "owner": owner,
        **asdict(use),
        **{f"most_{name}": value for name, value in asdict(most).items() if name in FORMS},
    }


def me_table(answer: dict[str, Any]) -> Table:
    """Who asks, as a table."""
    return Table("You", ME, ({**answer, "teams": ", ".join(answer["teams"])},))


def access_tables(answer: dict[str, Any]) -> tuple[Table, ...]:
    """The policy as tables."""
    note = "Who runs the engine, and root, are its admins. Everybody owns what carries their own name."
    teams = tuple({**team, "members": ", ".join(team["members"])} for team in answer["teams"])
    quotas = tuple({"owner": one["owner"], **{name: _of_most(one, name) for name in FORMS}} for one in answer["quotas"])
    roles = Table("Roles", ROLE, tuple(answer["roles"]), (note,))
    return roles, Table("Teams", TEAM, teams), Table("Quotas", QUOTA, quotas)


def _of_most(one: Mapping[str, Any], name: str) -> str:
    form, unit = FORMS[name]
    has, most = (None if one.get(key) is None else one[key] / unit for key in (name, f"most_{name}"))
    text = form.format(has or 0)
    return text if most is None else f"{text} of {form.format(most)}"
