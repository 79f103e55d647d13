"""The value of a secret reaches the sink that refers to it, and nothing else: no file, page, message or log."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headgate.errors import InputError
from headgate.runtime.engine.engine import Engine
from headgate.store.secrets import SECRETS
from tests.api.in_process import InProcess
from tests.runtime.small import files, flow, json_rows, numbered, put, wait_for

pytestmark = pytest.mark.spark

NAME, VALUE = "TEST_FOLDER", "tr0ut-in-the-m1lk"
PATHS = ("/status", "/dataflows", "/observations", "/audit", "/bill", "/access", "/dataflows/kept", "/dataflows/lost")


def test_a_value_is_nowhere_but_at_the_sink(
    engine: Engine, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    environment = {f"HEADGATE_SECRET_{NAME}": VALUE}
    SECRETS.load(environment)
    (tmp_path / VALUE).mkdir()
    with sqlite3.connect(tmp_path / "lost.db") as database:
        database.execute(f'create table "{VALUE}" (something_else int)')
    put(tmp_path / "in", "0", numbered(0, 12))
    table = {"type": "write_table", "config": {"url": f"sqlite:///{tmp_path}/${{secret:{NAME}}}/t.db", "table": "t"}}
    # Its table has other columns, and the database names it in its refusal.
    lost = {"type": "write_table", "config": {"url": f"sqlite:///{tmp_path}/lost.db", "table": f"${{secret:{NAME}}}"}}
    engine.submit(flow("kept", files(tmp_path / "in"), table), flow("lost", files(tmp_path / "in"), lost))
    wait_for(lambda: engine.outbox.refusals, "a refusal")
    engine.housekeep()
    with sqlite3.connect(tmp_path / VALUE / "t.db") as database:
        assert sorted(row for (row,) in database.execute("select id from t")) == list(range(12))
    assert f"${{secret:{NAME}}} has no column" in str(engine.outbox.refusals)

    client = InProcess(engine)  # type: ignore[arg-type]
    texts = {path: client("GET", path).text for path in PATHS}
    bad = {"type": "write_table", "config": {"url": f"${{secret:{NAME}}}", "table": "t"}}
    with pytest.raises(InputError) as caught:
        engine.submit(flow("refused", files(tmp_path / "in"), bad))
    texts["refused"] = str(caught.value) + repr(caught.value.parameters)
    logs = tmp_path_factory.getbasetemp().glob("*.log")
    for file in (*(tmp_path / "state").rglob("*"), *logs):
        texts[str(file)] = "" if file.is_dir() else file.read_bytes().decode("latin-1")
    assert len(texts) > 20
    assert [place for place, text in texts.items() if VALUE in place + text] == []
    assert environment == {}


def test_a_secret_without_a_value_is_a_sentence(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 1))
    table = {"type": "write_table", "config": {"url": "sqlite:///${secret:NOBODY_HAS_IT}", "table": "t"}}
    with pytest.raises(InputError, match="no secret 'NOBODY_HAS_IT'") as caught:
        engine.submit(flow("a", files(tmp_path / "in"), table))
    assert caught.value.condition == "UNKNOWN_SECRET"
    assert engine.dataflows == ()
    assert json_rows(tmp_path) == []
