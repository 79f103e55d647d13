"""Settings of a project: ``headgate.toml``, environment variables, and the defaults of the commands.

An option on the command line wins over an environment variable (``HEADGATE_STATE``), which wins over the nearest
``headgate.toml`` upwards from the working directory, which wins over the default.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field

from headgate.documents.check.pydantic_faults import model_of
from headgate.documents.located import Located, MarkedDict
from headgate.documents.project_tables import ProjectTables
from headgate.errors import Fault, InputError, InvalidDataflow, Place, os_reason
from headgate.model.strategy import StrategyName

__all__ = ["CommandSettings", "environment_name", "given_settings", "project_tables"]

PREFIX = "HEADGATE_"
NOT_SETTINGS = (
    *("HEADGATE_CONFIG", "HEADGATE_TRACEBACK"),
    *("HEADGATE_URL", "HEADGATE_TOKEN", "HEADGATE_TOKEN_FILE", "HEADGATE_CERTIFICATES"),
)
TABLES = frozenset(ProjectTables.model_fields)


class CommandSettings(BaseModel):
    """Every setting has the name of the option whose default it replaces, in all commands that have the option."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Path = Field(Path(".headgate"), description="The state directory of the engine.")
    master: str = Field("local[*]", description="The Spark to run on: local[*], spark://, yarn or k8s://.")
    cluster: Path | None = Field(None, description="The folder of a cluster that headgate cluster up has started.")
    conf: list[str] = Field([], description="Settings of Spark, each NAME=VALUE.")
    trigger: str = Field("500ms", description="How often micro-batches begin.")
    time_budget: str = Field("60s", description="How long a task may take for a micro-batch.")
    strategy: StrategyName = Field(StrategyName.HOT, description="How dataflows are merged where they run.")
    exact: bool = Field(False, description="Share equal tasks only, no wider streams.")
    price_per_hour: str = Field("0.10", description="What the machine of the engine costs an hour, in USD.")
    prices: Path | None = Field(None, description="A file of prices for the bills of headgate plan.")
    catalogue: str = Field("ec2-2013", description="The machines that plans may use; also the cloud of simulations.")
    time_limit: str = Field("10s", description="The longest that a planning algorithm may search.")
    rows: int = Field(20, ge=1, description="Tasks that headgate top shows.")


def environment_name(setting: str) -> str:
    """The environment variable of a setting.

    >>> environment_name("time_budget")
    'HEADGATE_TIME_BUDGET'
    """
    return f"{PREFIX}{setting.upper()}"


def given_settings(file: Path | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that a file and the environment give, by name; raises :class:`InvalidDataflow` with every fault."""
    values: dict[str, Any] = {}
    if file is not None:
        values, located = _read(file)
        faults: list[Fault] = []
        _tables(values, located, faults)
        values = _checked({name: value for name, value in values.items() if name not in TABLES}, located, faults)
        folder = file.parent
        paths = {name for name in values if Path in (_type(name), *get_args(_type(name)))}
        values |= {name: _from(folder, Path(values[name])) for name in paths}
    return values | _checked(*_from_environment(environment), [])


def project_tables(file: Path | None) -> ProjectTables:
    """The tables of a file of settings; raises :class:`InvalidDataflow` with every fault."""
    if file is None:
        return ProjectTables()
    faults: list[Fault] = []
    tables = _tables(*_read(file), faults)
    if tables is None:
        raise InvalidDataflow(faults)
    return tables.beside(file)


def _tables(values: Mapping[str, Any], located: Located, faults: list[Fault]) -> ProjectTables | None:
    given = {name: value for name, value in values.items() if name in TABLES}
    return model_of(ProjectTables, given, located, faults)


def _type(name: str) -> Any:
    return CommandSettings.model_fields[name].annotation


def _from(folder: Path, path: Path) -> Path:
    """A path of a file of settings: relative ones begin at the file's folder."""
    return path if folder.resolve() == Path.cwd() else folder / path


def _checked(values: Mapping[str, Any], located: Located, faults: list[Fault]) -> dict[str, Any]:
    settings = model_of(CommandSettings, values, located, faults)
    if settings is None or faults:
        raise InvalidDataflow(faults)
    return {name: getattr(settings, name) for name in values}


def _read(file: Path) -> tuple[dict[str, Any], Located]:
    try:
        text = file.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line (\d+)", str(error))
        place = Place(str(file), int(where[1]) if where else None)
        raise InvalidDataflow([Fault("NOT_TOML", f"this is not TOML: {error}", place)]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("BAD_SETTINGS", f"cannot read {file}: {os_reason(error)}") from None
    return values, Located(values, str(file), lambda: _marked(text))


def _marked(text: str) -> MarkedDict:
    """The lines of keys and tables, as far as a key stands at the beginning of its line."""
    root = table = MarkedDict((1, None))
    for number, line in enumerate(text.splitlines(), 1):
        if (header := re.match(r"\s*\[([\w.*-]+)\]", line)) is not None:
            table = root
            for name in header[1].split("."):
                if name not in table:
                    table.put(name, MarkedDict((number, None)), (number, None))
                table = table[name]
        elif (key := re.match(r"\s*(?:\"([^\"]*)\"|([\w-]+))\s*=", line)) is not None:
            table.put(key[1] or key[2], None, (number, None))
    return root


def _from_environment(environment: Mapping[str, str]) -> tuple[dict[str, Any], Located]:
    values: dict[str, Any] = {}
    for name, text in environment.items():
        if name.startswith(PREFIX) and name not in NOT_SETTINGS:
            key = name.removeprefix(PREFIX).lower()
            values[key] = [part.strip() for part in text.split(",")] if key == "conf" else text
    known = {name: value for name, value in values.items() if name in CommandSettings.model_fields}
    return known, Located(known, "environment", lambda: None)
