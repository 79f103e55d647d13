"""Settings of a project as defaults of the commands' options."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.cli.root_options import ROOT_OPTIONS

if TYPE_CHECKING:
    from headgate.documents.project_tables import ProjectTables

__all__ = [
    "COMMANDS_WITHOUT",
    "default_map",
    "find_settings_file",
    "given_tables",
    "setting_of",
    "settings_of_commands",
]

FILE_NAME = "headgate.toml"

ALIASES = {"cloud": "catalogue"}
"""Options that have another name than their setting."""

COMMANDS_WITHOUT = ("cluster",)
"""Commands whose options only have the same name: the folder of a cluster is not that of an engine."""


RIVALS = {"master": "--cluster", "cluster": "--master"}
"""Settings that an option of another name replaces."""


def find_settings_file(folder: Path) -> Path | None:
    """The nearest ``headgate.toml`` in a folder or above it."""
    for place in (folder, *folder.parents):
        if (place / FILE_NAME).is_file():
            return place / FILE_NAME
    return None


def setting_of(option: str) -> str | None:
    """The setting that is the default of an option.

    >>> setting_of("--time-budget"), setting_of("--cloud"), setting_of("--json")
    ('time_budget', 'catalogue', None)
    """
    from headgate.documents.settings import CommandSettings

    name = option.removeprefix("--").replace("-", "_")
    name = ALIASES.get(name, name)
    return name if name in CommandSettings.model_fields else None


def settings_of_commands(commands: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """Each option that a setting is the default of: the command, the parameter, and the setting."""
    for name, command in commands.items():
        if name in COMMANDS_WITHOUT:
            continue
        inner = getattr(command, "commands", None)
        for path, each in [((name, key), value) for key, value in inner.items()] if inner else [((name,), command)]:
            for parameter in each.params:
                setting = setting_of(max(parameter.opts, key=len))
                if parameter.param_type_name == "option" and setting is not None:
                    yield path, parameter, setting


def default_map(commands: Mapping[str, Any], config: Path | None, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Defaults by command and parameter, from the file of settings and the environment."""
    file = _settings_file(config)
    if file is None and not any(name.startswith("HEADGATE_") for name in os.environ):
        return {}
    from headgate.documents.settings import given_settings

    given = given_settings(file, os.environ)
    for setting, rival in RIVALS.items():
        if rival in arguments:
            given.pop(setting, None)
    defaults: dict[str, Any] = {}
    for path, parameter, setting in settings_of_commands(commands) if given else ():
        if setting in given:
            place = defaults
            for name in path:
                place = place.setdefault(name, {})
            value = given[setting]
            place[parameter.name] = value.value if isinstance(value, Enum) else value
    return defaults


def given_tables() -> ProjectTables:
    """The tables of the file of settings that the command under way uses."""
    from headgate.documents.settings import project_tables

    return project_tables(_settings_file(ROOT_OPTIONS.get().config))


def _settings_file(config: Path | None) -> Path | None:
    named = config or (Path(os.environ["HEADGATE_CONFIG"]) if os.environ.get("HEADGATE_CONFIG") else None)
    return named or find_settings_file(Path.cwd())
