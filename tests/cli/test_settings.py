"""``headgate.toml``: what is found, what wins, and every fault at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main

from headgate.cli.main import app
from headgate.cli.settings import default_map, settings_of_commands
from headgate.documents.settings import CommandSettings, environment_name, given_settings
from headgate.errors import InputError, InvalidDataflow
from tests.cli.terminal import headgate

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without settings, and no settings in the environment."""
    for name in CommandSettings.model_fields:
        monkeypatch.delenv(environment_name(name), raising=False)
    monkeypatch.delenv("HEADGATE_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_setting_is_the_default_of_an_option() -> None:
    used = {setting for _, _, setting in settings_of_commands(COMMANDS)}
    assert used == set(CommandSettings.model_fields)


def test_defaults_of_settings_and_commands_agree() -> None:
    for path, parameter, setting in settings_of_commands(COMMANDS):
        default = CommandSettings.model_fields[setting].default
        assert parameter.default in (None, [], default, str(default)), (path, setting)


def test_the_nearest_file_upwards_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "headgate.toml").write_text('trigger = "2s"\nstate = "kept"\n')
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    defaults = default_map(COMMANDS, None)
    assert defaults["run"]["trigger"] == "2s"
    assert defaults["submit"]["state"] == folder / "kept"
    assert "cluster" not in defaults
    (folder / "inner" / "headgate.toml").write_text('trigger = "3s"\n')
    assert default_map(COMMANDS, None)["run"] == {"trigger": "3s"}
    assert default_map(COMMANDS, folder / "headgate.toml")["run"]["trigger"] == "2s"


def test_options_win_over_the_environment_over_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def state(*options: str) -> str:
        return headgate("list", *options).err

    assert "'.headgate'" in state() or ".headgate" in state()
    (folder / "headgate.toml").write_text('state = "of_file"\n')
    assert "of_file" in state()
    monkeypatch.setenv("HEADGATE_STATE", "of_environment")
    assert "of_environment" in state()
    assert "of_option" in state("--state", "of_option")


def test_every_fault_is_reported_at_once_with_its_line(folder: Path) -> None:
    (folder / "headgate.toml").write_text('stat = "x"\n\ntriger = "5s"\nrows = "many"\nstrategy = "hit"\n')
    ran = headgate("list")
    assert (ran.status, ran.out) == (2, "")
    for line, text in ((1, "'state'"), (3, "'trigger'"), (4, "a whole number"), (5, "'hot'")):
        assert any(f"headgate.toml:{line}" in each and text in each for each in ran.err.splitlines()), ran.err


@pytest.mark.parametrize("text", ["state = ", "= 3", "[", "state = 'a'\nstate = 'b'"])
def test_what_is_not_toml_is_refused_with_its_line(folder: Path, text: str) -> None:
    (folder / "headgate.toml").write_text(text)
    with pytest.raises(InvalidDataflow) as refused:
        given_settings(folder / "headgate.toml", {})
    assert refused.value.faults[0].condition == "NOT_TOML"


def test_a_named_file_must_exist(folder: Path) -> None:
    with pytest.raises(InputError) as refused:
        given_settings(folder / "none.toml", {})
    assert refused.value.condition == "BAD_SETTINGS"
    assert headgate("--config", folder / "none.toml", "list").status == 2


def test_environment_variables_have_the_types_of_settings() -> None:
    given: dict[str, Any] = given_settings(
        None, {"HEADGATE_ROWS": "5", "HEADGATE_EXACT": "true", "HEADGATE_CONF": "a=1, b=2", "HEADGATE_TRACEBACK": "1"}
    )
    assert given == {"rows": 5, "exact": True, "conf": ["a=1", "b=2"]}
    with pytest.raises(InvalidDataflow):
        given_settings(None, {"HEADGATE_ROWS": "none"})


def test_a_cluster_on_the_command_line_replaces_the_master_of_the_file(folder: Path) -> None:
    (folder / "headgate.toml").write_text('master = "local[2]"\n')
    assert default_map(COMMANDS, None, ["run"])["run"] == {"master": "local[2]"}
    assert "run" not in default_map(COMMANDS, None, ["run", "--cluster", "here"])


def test_tables_come_from_the_file_that_is_named(folder: Path) -> None:
    (folder / "headgate.toml").write_text('[access.roles]\nana = "viewer"\n')
    (folder / "other.toml").write_text('[access.roles]\nana = "king"\n')
    assert "king" in headgate("--config", "other.toml", "run").err
