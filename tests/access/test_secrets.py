"""Secrets: who may use which, and how their values are kept out of what others can read."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.access.authority import AccessRefused
from headgate.access.principal import AccessRole, Principal
from headgate.access.rules import TenantRules
from headgate.documents import parse
from headgate.documents.settings import project_tables
from headgate.errors import InputError, InvalidDataflow
from headgate.model.secret import filled_in, secret_names
from headgate.store.secrets import SecretStore

SINK = """
name: alarms
owner: {owner}
tasks:
  - {{id: in, type: rate}}
  - {{id: out, type: write_table, config: {{url: "postgresql://app:{secret}@db/city", table: t}}, inputs: [in]}}
"""


@pytest.mark.parametrize(
    ("role", "owner", "secret", "allowed"),
    [
        ("submitter", "city", "CITY_DB", True),
        ("submitter", "rail", "CITY_DB", False),
        ("admin", "rail", "CITY_DB", False),
        ("submitter", "rail", "ALL", True),
        ("submitter", "city", "UNGRANTED", False),
        ("operator", "city", "UNGRANTED", True),
    ],
)
def test_only_owners_that_have_been_granted_a_secret_use_it(
    role: str, owner: str, secret: str, allowed: bool, tmp_path: Path
) -> None:
    file = tmp_path / "headgate.toml"
    file.write_text('[secrets]\nfile = "private"\n[secrets.owners]\nCITY_DB = ["city"]\nALL = ["*"]\n')
    tables = project_tables(file)
    assert tables.secrets.file == tmp_path / "private"
    who = Principal("ana", AccessRole(role), frozenset({owner}))
    dataflow = parse(SINK.format(owner=owner, secret=f"${{secret:{secret}}}"), "yaml").dataflow
    if allowed:
        tables.rules().check(who, dataflow)
    else:
        with pytest.raises(AccessRefused, match=f"may not use secret '{secret}'"):
            tables.rules().check(who, dataflow)


@pytest.mark.parametrize("reference", ["${secret:}", "${secret:A", "${secret:A-B}", "${secret:1}"])
def test_what_only_looks_like_a_reference_is_a_fault(reference: str) -> None:
    with pytest.raises(InvalidDataflow, match="not complete"):
        parse(SINK.format(owner="city", secret=reference), "yaml")


def test_a_step_gets_no_secret() -> None:
    text = """
name: thief
tasks:
  - {id: in, type: rate}
  - {id: look, type: derive, config: {columns: {stolen: "'${secret:CITY_DB}'"}}, inputs: [in]}
"""
    with pytest.raises(InvalidDataflow, match="refers to a secret") as caught:
        parse(text, "yaml")
    assert [fault.place.line for fault in caught.value.faults] == [5]


def test_the_environment_wins_and_keeps_nothing(tmp_path: Path) -> None:
    file = tmp_path / "private"
    file.write_text("# for tests\nCITY_DB=of = the file\n\nOTHER=b\n")
    file.chmod(0o600)
    environment = {"HEADGATE_SECRET_CITY_DB": "of the environment", "PATH": "/bin"}
    store = SecretStore()
    store.load(environment, file)
    assert environment == {"PATH": "/bin"}
    assert [store.value("CITY_DB"), store.value("OTHER")] == ["of the environment", "b"]
    with pytest.raises(InputError, match="did you mean 'OTHER'") as caught:
        store.value("OTHE")
    assert caught.value.condition == "UNKNOWN_SECRET"


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "private"
    file.write_text("A=b\n")
    for mode in (0o644, 0o640, 0o602):
        file.chmod(mode)
        with pytest.raises(InputError, match="chmod 600") as caught:
            SecretStore().load({}, file)
        assert caught.value.condition == "SECRETS_NOT_PRIVATE"


VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=6, max_size=40)


@given(st.lists(VALUES, min_size=1, max_size=4, unique=True), st.text(max_size=30), st.booleans())
def test_a_value_is_hidden_wherever_it_stands(values: list[str], around: str, in_url: bool) -> None:
    store = SecretStore()
    store.load({f"HEADGATE_SECRET_S{number}": value for number, value in enumerate(values)})
    text = around.join(quote(value, safe="") if in_url else value for value in values)
    hidden = store.hidden(f"x {text} y")
    # What is left of a value can only be part of a name or of what was around it.
    left = "".join(part for part in hidden.split("${secret:S"))
    assert not any(value in left and value not in around * 2 for value in values)


@given(st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True), max_size=4), st.text(max_size=9))
def test_references_are_found_and_filled(names: list[str], between: str) -> None:
    between = between.replace("$", "")
    text = between.join(f"${{secret:{name}}}" for name in names)
    assert secret_names(text) == tuple(dict.fromkeys(names))
    assert filled_in(text, str.upper) == between.join(name.upper() for name in names)


def test_rules_without_secrets_have_nothing_to_say() -> None:
    text = SINK.format(owner="city", secret="plain")
    TenantRules().check(Principal("ana"), parse(text, "yaml").dataflow)
