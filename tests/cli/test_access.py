"""``headgate whoami`` and ``headgate access``, and the table [access] of headgate.toml."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.access.principal import AccessRole
from headgate.api.application import application
from headgate.api.server import serving
from headgate.documents.settings import given_settings, project_tables
from headgate.errors import InvalidDataflow
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.cli.terminal import headgate

SETTINGS = """
state = "here"

[access.roles]
ana = "submitter"
"*" = "viewer"

[access.teams]
city = ["ana", "ben"]
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "headgate.toml").write_text(SETTINGS, encoding="utf-8")
    policy = project_tables(tmp_path / "headgate.toml").access.policy()
    with serving(tmp_path, application(ServedEngine(FakeEngine(tmp_path), default_registry(), policy))):
        yield tmp_path


def test_whoami_says_who_the_engine_takes_you_for(state: Path) -> None:
    name = pwd.getpwuid(os.getuid()).pw_name
    answer = json.loads(headgate("whoami", "--state", state, "--json").out)
    assert (answer["name"], answer["role"], answer["teams"]) == (name, "admin", [name])
    assert "admin" in headgate("whoami", "--state", state).out


def test_access_shows_roles_and_teams_and_who_did_what(state: Path) -> None:
    shown = headgate("access", "--state", state).out
    assert all(word in shown for word in ("ana", "submitter", "viewer", "city", "ana, ben"))
    assert headgate("withdraw", "none", "--state", state).status == 2
    entries = json.loads(headgate("access", "--audit", "--state", state, "--json").out)["entries"]
    assert [entry["outcome"] for entry in entries] == ["UNKNOWN_DATAFLOW"]
    assert "withdrawals" in headgate("access", "--audit", "--state", state).out


def test_tables_stand_beside_settings(tmp_path: Path) -> None:
    file = tmp_path / "headgate.toml"
    file.write_text(SETTINGS, encoding="utf-8")
    assert given_settings(file, {}) == {"state": tmp_path / "here"}
    policy = project_tables(file).access.policy()
    assert policy.principal("ana").teams == {"ana", "city"}
    assert policy.principal("carl").role is AccessRole.VIEWER


def test_faults_of_tables_are_reported_with_those_of_settings(tmp_path: Path) -> None:
    file = tmp_path / "headgate.toml"
    file.write_text('stat = 1\n[access.roles]\nana = "king"\n[access.teams]\n"a b" = []\n', encoding="utf-8")
    with pytest.raises(InvalidDataflow) as refused:
        given_settings(file, {})
    faults = refused.value.faults
    assert [fault.place.line for fault in faults] == [1, 3, 5]
    assert "'admin'" in str(faults[1])
