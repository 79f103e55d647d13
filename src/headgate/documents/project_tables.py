"""The tables of ``headgate.toml``: what an engine is started with and no option of a command says."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from headgate.access.policy import EVERYBODY, AccessPolicy
from headgate.access.principal import AccessRole
from headgate.access.quota import Quota
from headgate.access.rules import TenantRules
from headgate.errors import BadValue, shorten
from headgate.model.names import NAME_RULE, is_name
from headgate.model.secret import SECRET_NAME
from headgate.model.span import seconds_of
from headgate.tasks.file_paths import is_url

__all__ = [
    "AccessTable",
    "AllowTable",
    "ControlTable",
    "ProjectTables",
    "QuotaTable",
    "QuotasTable",
    "SecretsTable",
    "WorkersTable",
]


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


def _secret(text: str) -> str:
    if not SECRET_NAME.fullmatch(text):
        raise BadValue(f"{shorten(text)} is not a name of a secret", "letters, digits and _, beginning with a letter")
    return text


class SecretsTable(_TomlTable):
    """Where secrets are, and whose dataflows may use them."""

    file: Path | None = Field(None, description="A file with a line NAME=value for each secret, of mode 0600.")
    owners: dict[Annotated[str, AfterValidator(_secret)], list[str]] = Field(
        {}, description=f"The owners whose dataflows may use a secret; '{EVERYBODY}' is all. Others: operators only."
    )


def _span(text: str) -> str:
    if seconds_of(text) is None:
        raise BadValue(f"{shorten(text)} is not a span of time", "such as 500ms, 10s, 5min, 1h, 1d")
    return text


TomlSpan = Annotated[str, AfterValidator(_span)]


class ControlTable(_TomlTable):
    """How an engine decides by itself. What 'headgate policy' has chosen comes before the first four."""

    policy: str = Field("threshold", description="The policy that decides.")
    mode: Literal["off", "recommend", "auto"] = Field(
        "off", description="Whether it decides, and whether that is done."
    )
    budget_per_hour: Decimal | None = Field(None, ge=0, le=1_000_000, description="What all machines may cost an hour.")
    max_machines: int | None = Field(None, ge=1, description="Machines at most.")
    decide_every: TomlSpan = Field("60s", description="From one decision to the next.")
    window: TomlSpan = Field("60s", description="The time that a decision is based on.")
    longest_epoch: TomlSpan = Field("2s", description="How long micro-batches may take before cores count as full.")
    billing_period: TomlSpan = Field("1s", description="Machines are paid for in whole periods of this length.")
    cooldown: TomlSpan = Field("60s", description="From one change of machines, or of a task, to the next.")
    shrink_after: TomlSpan = Field("5min", description="From a change until something is taken away.")
    floor: TomlSpan = Field("1h", description="Machines stay enough for the most that came in this time.")
    forecaster: str = Field(
        "ensemble", description="How policies that look ahead forecast: ensemble, holt, kalman, ..."
    )
    horizon: TomlSpan = Field("30min", description="How far they look ahead.")
    season: TomlSpan | None = Field(None, description="The period after which rates repeat, such as 1d.")
    reallocate_after: TomlSpan = Field("60s", description="From one change of drs to the next (T_ra).")
    freeze: TomlSpan = Field("1h", description="For how long nothing is taken away after four changes of direction.")
    changes_per_hour: int = Field(12, ge=1, le=3_600, description="Of machines, and of the alternate of each task.")


class AllowTable(_TomlTable):
    """What dataflows may touch. What is left out holds for operators without limit, and allows others nothing."""

    read: list[str] | None = Field(None, description="Folders and URLs to read from. {owner} stands for the owner.")
    write: list[str] | None = Field(None, description="Folders and URLs to write to.")
    hosts: list[str] | None = Field(None, description="Hosts to connect to, 'name' or 'name:port'; * is any text.")
    modules: list[str] | None = Field(None, description="Python modules whose functions tasks may call.")

    def by_name(self) -> dict[str, tuple[str, ...]]:
        """The lists that are given."""
        return {name: tuple(places) for name, places in self.model_dump(exclude_none=True).items()}

    def beside(self, folder: Path) -> AllowTable:
        """The same, with relative paths beginning at a folder."""
        placed = {
            name: [place if is_url(place) else str(folder / place) for place in places]
            for name, places in (("read", self.read), ("write", self.write))
            if places is not None
        }
        return self.model_copy(update=placed)


class WorkersTable(_TomlTable):
    """The processes in which Python functions of tasks run, on this machine."""

    memory: str = Field("4g", pattern=r"^\d{1,6}[mg]$", description="The most memory of one, such as 512m or 4g.")
    environment: list[str] = Field([], description="Variables of the environment that they get; * is any text.")

    def variables(self) -> dict[str, str]:
        """The same as variables of the environment."""
        memory_bytes = int(self.memory[:-1]) << (30 if self.memory.endswith("g") else 20)
        return {
            "HEADGATE_WORKER_MEMORY_BYTES": str(memory_bytes),
            "HEADGATE_WORKER_ENVIRONMENT": ",".join(self.environment),
        }


class QuotaTable(_TomlTable):
    """What an owner may have."""

    dataflows: int | None = Field(None, ge=0, description="Dataflows.")
    tasks: int | None = Field(None, ge=0, description="Tasks of all its dataflows.")

    def quota(self, usual: Quota = Quota()) -> Quota:  # noqa: B008  (it is immutable)
        """The quota, with the usual one where nothing is said."""
        return Quota(
            usual.dataflows if self.dataflows is None else self.dataflows,
            usual.tasks if self.tasks is None else self.tasks,
        )


class QuotasTable(QuotaTable):
    """What each owner may have: 10,000 dataflows and 100,000 tasks, if nothing else is said."""

    owners: dict[Annotated[str, AfterValidator(_team)], QuotaTable] = Field(
        {}, description="What owners may have for whom that is different."
    )


class ProjectTables(_TomlTable):
    """All tables."""

    access: AccessTable = Field(AccessTable(), description="Who may do what.")
    control: ControlTable = Field(ControlTable(), description="How an engine decides by itself.")
    secrets: SecretsTable = Field(SecretsTable(), description="Secrets that options of sources and sinks refer to.")

    allow: AllowTable = Field(AllowTable(), description="What dataflows may touch.")

    quotas: QuotasTable = Field(QuotasTable(), description="What an owner may have.")
    workers: WorkersTable = Field(WorkersTable(), description="The processes in which Python functions run.")

    def rules(self) -> TenantRules:
        """What the dataflows of an owner may use."""
        granted = {name: frozenset(owners) for name, owners in self.secrets.owners.items()}
        usual = self.quotas.quota()
        quotas = {owner: table.quota(usual) for owner, table in self.quotas.owners.items()}
        return TenantRules(granted, self.allow.by_name(), usual, quotas)

    def beside(self, file: Path) -> ProjectTables:
        """The same, with relative paths beginning at the folder of the file that holds them."""
        placed: dict[str, _TomlTable] = {"allow": self.allow.beside(file.parent.absolute())}
        if self.secrets.file is not None:
            placed["secrets"] = self.secrets.model_copy(update={"file": file.parent / self.secrets.file})
        return self.model_copy(update=placed)
