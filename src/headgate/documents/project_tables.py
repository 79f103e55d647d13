"""The tables of ``headgate.toml``: what an engine is started with and no option of a command says."""

from __future__ import annotations

import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

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
    catch_up: TomlSpan = Field("2min", description="In which time what waits is to be worked off.")
    season: TomlSpan | None = Field(None, description="The period after which rates repeat, such as 1d.")
    reallocate_after: TomlSpan = Field("60s", description="From one change of drs to the next (T_ra).")
    freeze: TomlSpan = Field("1h", description="For how long nothing is taken away after four changes of direction.")
    changes_per_hour: int = Field(12, ge=1, le=3_600, description="Of machines, and of the alternate of each task.")


MemoryText = Annotated[str, Field(pattern=r"^\d{1,6}[mg]$")]


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

    memory: MemoryText = Field("4g", description="The most memory of one of Spark's workers, such as 512m or 4g.")
    environment: list[str] = Field([], description="Variables of the environment that these get; * is any text.")
    isolate: bool | None = Field(
        None,
        description="Whether functions run in processes of their own, confined; if left out, when [allow] has modules.",
    )
    trusted: list[str] = Field([], description="Modules whose functions run in Spark's workers all the same.")
    network: list[str] = Field([], description="Modules whose functions may connect to hosts.")
    read: list[Path] = Field([], description="Files and folders that functions may read, besides their modules.")
    function_memory: MemoryText = Field("1g", description="The most memory of a function's process.")

    def variables(self, *, has_allowed_modules: bool) -> dict[str, str]:
        """The same as variables of the environment."""
        isolated = has_allowed_modules if self.isolate is None else self.isolate
        of_functions = {
            "ISOLATED": "1" if isolated else "0",
            "TRUSTED": os.pathsep.join(self.trusted),
            "NETWORK": os.pathsep.join(self.network),
            "READ": os.pathsep.join(map(str, self.read)),
            "MEMORY_BYTES": str(_bytes(self.function_memory)),
        }
        return {
            "HEADGATE_WORKER_MEMORY_BYTES": str(_bytes(self.memory)),
            "HEADGATE_WORKER_ENVIRONMENT": ",".join(self.environment),
            **{f"HEADGATE_WORKER_FUNCTIONS_{name}": value for name, value in of_functions.items()},
        }


def _bytes(memory: str) -> int:
    return int(memory[:-1]) << (30 if memory.endswith("g") else 20)


class QuotaTable(_TomlTable):
    """What an owner may have."""

    dataflows: int | None = Field(None, ge=0, description="Dataflows.")
    tasks: int | None = Field(None, ge=0, description="Tasks of all its dataflows.")
    sources: int | None = Field(None, ge=0, description="Different sources; each is a query of Spark.")
    time_budget: TomlSpan | None = Field(None, description="The longest time budget of a task, such as 10min.")
    rows_per_s: float | None = Field(None, gt=0, description="Rows a second that its sources take.")
    cores: float | None = Field(None, gt=0, description="Cores that its tasks keep busy.")
    kept: MemoryText | None = Field(None, description="State and checkpoints, such as 500m or 20g.")
    price_per_day: float | None = Field(None, ge=0, description="What it pays for machines in 24 hours.")

    def quota(self, usual: Quota = Quota()) -> Quota:  # noqa: B008  (it is immutable)
        """The quota, with the usual one where nothing is said."""
        said: dict[str, Any] = self.model_dump(exclude_none=True, exclude={"owners", "kept", "time_budget"})
        if self.kept is not None:
            said["kept_bytes"] = _bytes(self.kept)
        if self.time_budget is not None:
            said["time_budget_s"] = seconds_of(self.time_budget)
        return replace(usual, **said)


class QuotasTable(QuotaTable):
    """What each owner may have: 10,000 dataflows, 100,000 tasks and 500 sources, if nothing else is said."""

    owners: dict[Annotated[str, AfterValidator(_team)], QuotaTable] = Field(
        {}, description="What owners may have for whom that is different."
    )


class MaskTable(_TomlTable):
    """What of rows only admins see, where rows are shown: live ones, and those that failed."""

    columns: list[str] = Field([], description="Columns that are hidden; * is any text.")


class ProjectTables(_TomlTable):
    """All tables."""

    access: AccessTable = Field(AccessTable(), description="Who may do what.")
    control: ControlTable = Field(ControlTable(), description="How an engine decides by itself.")
    secrets: SecretsTable = Field(SecretsTable(), description="Secrets that options of sources and sinks refer to.")

    allow: AllowTable = Field(AllowTable(), description="What dataflows may touch.")

    mask: MaskTable = Field(MaskTable(), description="What of rows only admins see.")
    quotas: QuotasTable = Field(QuotasTable(), description="What an owner may have.")
    workers: WorkersTable = Field(WorkersTable(), description="The processes in which Python functions run.")

    def worker_variables(self) -> dict[str, str]:
        """What workers have to know, as variables of the environment."""
        return self.workers.variables(has_allowed_modules=self.allow.modules is not None)

    def rules(self) -> TenantRules:
        """What the dataflows of an owner may use."""
        granted = {name: frozenset(owners) for name, owners in self.secrets.owners.items()}
        usual = self.quotas.quota()
        quotas = {owner: table.quota(usual) for owner, table in self.quotas.owners.items()}
        return TenantRules(granted, self.allow.by_name(), usual, quotas, tuple(self.mask.columns))

    def beside(self, file: Path) -> ProjectTables:
        """The same, with relative paths beginning at the folder of the file that holds them."""
        folder = file.parent.absolute()
        placed: dict[str, _TomlTable] = {
            "allow": self.allow.beside(folder),
            "workers": self.workers.model_copy(update={"read": [folder / place for place in self.workers.read]}),
        }
        if self.secrets.file is not None:
            placed["secrets"] = self.secrets.model_copy(update={"file": file.parent / self.secrets.file})
        return self.model_copy(update=placed)
