"""The tables of ``headgate.toml``: what an engine is started with and no option of a command says."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from headgate.access.policy import EVERYBODY, AccessPolicy
from headgate.access.principal import AccessRole
from headgate.errors import BadValue, shorten
from headgate.model.names import NAME_RULE, is_name

__all__ = ["AccessTable", "ProjectTables"]


def _team(text: str) -> str:
    if not is_name(text):
        raise BadValue(f"{shorten(text)} is not a name of a team", NAME_RULE)
    return text


class _TomlTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AccessTable(_TomlTable):
    """Who may do what."""

    roles: dict[str, AccessRole] = Field(
        {}, description=f"The role of each user: viewer, submitter, operator or admin. '{EVERYBODY}' is all others."
    )
    teams: dict[Annotated[str, AfterValidator(_team)], list[str]] = Field(
        {}, description="The members of each team. A team is the owner of dataflows."
    )

    def policy(self) -> AccessPolicy:
        """The policy that the table describes."""
        return AccessPolicy(self.roles, {team: frozenset(members) for team, members in self.teams.items()})


class ProjectTables(_TomlTable):
    """All tables."""

    access: AccessTable = Field(AccessTable(), description="Who may do what.")
