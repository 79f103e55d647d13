"""Broken files through every command that reads one: status 0 or 2, and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.documents import FORMATS
from tests.cli.terminal import Ran, headgate, process
from tests.hostile import damaged
from tests.samples import ENDINGS, TEXTS

INPUTS = 60
COMMANDS = [
    ["validate"],
    ["validate", "--json"],
    ["show"],
    ["show", "--json"],
    ["show", "-f", "svg"],
    ["show", "-f", "mermaid"],
]
COMMANDS += [["convert", "--to", "xml"], ["convert", "--to", "python"], ["diff"]]


def _check(ran: Ran) -> None:
    assert ran.status in (0, 2)
    assert "Traceback" not in ran.said
    assert "internal error" not in ran.said
    assert (ran.status == 0) == ("fault  " not in ran.err and '"valid": false' not in ran.out)


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=INPUTS, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files(tmp_path: Path, form: str, data: st.DataObject) -> None:
    path = tmp_path / f"damaged{ENDINGS[form]}"
    path.write_bytes(data.draw(damaged(TEXTS[form])))
    command = data.draw(st.sampled_from(COMMANDS))
    _check(headgate(*command, path, *([path] if command == ["diff"] else [])))


WORST = {
    "bomb.yaml": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *c]\n",
    "deep.yaml": "[" * 50_000,
    "deep.json": "[" * 50_000,
    "deep.xml": "<a>" * 50_000,
    "deep.py": "(" * 50_000,
    "deeper.py": "x = " + "-" * 500_000 + "1",
    "nulls.yaml": "\x00" * 100,
    "nulls.py": "a = '\x00'",
    "raises.py": "class E(Exception):\n    def __str__(self):\n        raise E\nraise E\n",
    "exits.py": "raise SystemExit(5)",
    "base.py": "raise BaseException('x')",
    "cancelled.py": "import asyncio\nraise asyncio.CancelledError",
    "entities.xml": '<!DOCTYPE a [<!ENTITY a "b">]><a>&a;</a>',
    "empty.yaml": "",
    "empty.json": "",
    "empty.xml": "",
    "empty.py": "",
    "surrogate.json": '{"\\ud800": "\\udfff", "tasks": [{"id": "\\ud800", "type": "\\ud800"}]}',
    "recursive.py": "def f():\n    f()\nf()\n",
    "warns.py": "import warnings\nwarnings.warn('odd')\nx = '\\d'\n",
}


def test_the_worst_files_as_processes_of_their_own(tmp_path: Path) -> None:
    for name, text in WORST.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ran = process("validate", *(tmp_path / name for name in WORST))
    assert (ran.status, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    for name in WORST:
        assert f"{tmp_path / name}:1" in ran.err or f"{tmp_path / name}:" in ran.err
    assert ran.err.count(" fault\n") + ran.err.count(" faults\n") == len(WORST)


@pytest.mark.parametrize(
    ("command", "name"),
    [(["show"], "raises.py"), (["convert", "--to", "json"], "surrogate.json"), (["diff", "bomb.yaml"], "deep.json")],
)
def test_other_commands_on_the_worst_files(tmp_path: Path, command: list[str], name: str) -> None:
    for file in ("bomb.yaml", name):
        (tmp_path / file).write_text(WORST[file], encoding="utf-8")
    ran = process(*command, name, cwd=tmp_path)
    assert (ran.status, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    assert ran.err.startswith("fault  ")
