"""``headgate tasks`` and ``headgate schema``, with the types of packages among them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from headgate.tasks import BUILT_IN
from headgate_riotbench import TYPES as RIOTBENCH
from tests.cli.terminal import headgate, process

KINDS = (*BUILT_IN, *RIOTBENCH)
PLUGIN = '''
from headgate import TaskConfig, TaskType

class Shout(TaskConfig):
    """Write a column in [capital] letters.

    It adds ``!`` where there is none.
    """

    column: str

TYPES = [TaskType("shout", Shout)]
'''
BROKEN = {
    "raises": "raise RuntimeError('two\\nlines')",
    "exits": "import sys\nsys.exit('leaving')",
    "missing": "",
    "no_types": "TYPES = 7",
    "wrong_types": "TYPES = ['filter']",
    "taken": "from headgate import TaskConfig, TaskType\nTYPES = TaskType('filter', TaskConfig)",
    "bad_name": "from headgate import TaskConfig, TaskType\nTYPES = TaskType('a b', TaskConfig)",
    "twice": "from headgate import TaskConfig, TaskType\nTYPES = [TaskType('a', TaskConfig)] * 2",
    "no_config": "from headgate import TaskType\nTYPES = TaskType('x', dict)",
    "no_schema": (
        "from headgate import TaskConfig, TaskType\nfrom typing import Callable\n"
        "class Odd(TaskConfig):\n    call: Callable[[], int]\nTYPES = TaskType('odd', Odd)"
    ),
}


def _install(folder: Path, module: str, source: str) -> dict[str, str]:
    """Put a package with an entry point into a folder; the environment in which it is found."""
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[headgate.task_types]\n{module} = {module}:TYPES\n", encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]), "COLUMNS": "100"}


def test_every_type_is_listed_with_its_summary() -> None:
    ran = headgate("tasks")
    assert ran.status == 0
    title, head, _, *rows = ran.out.splitlines()
    assert (title, head.split()[0]) == ("Task types", "type")
    assert [row.split()[0] for row in rows] == [kind.name for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_type_is_shown_with_its_options_and_example(kind: str) -> None:
    name = getattr(kind, "name")  # noqa: B009
    ran = headgate("tasks", name)
    assert ran.status == 0
    facts = headgate("tasks", name, "--json").json
    assert (facts["name"], facts["stateful"]) == (name, facts["state"] != "none")
    assert all(option["name"] in ran.out and option["description"] for option in facts["options"])
    assert "``" not in ran.out


def test_json_of_all_is_the_list_of_each() -> None:
    everything = headgate("tasks", "--json").json["task_types"]
    assert [facts["name"] for facts in everything] == [kind.name for kind in KINDS]
    one = headgate("tasks", "filter", "--json").json
    assert next(facts for facts in everything if facts["name"] == "filter")["options"] == one["options"]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_text_is_wrapped_at_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for ran in (headgate("tasks"), headgate("tasks", "window")):
        text = ran.out.partition("example:")[0]
        assert max(map(len, text.splitlines())) <= width
    if width == 200:
        assert "window_end. A window is passed on when the watermark has passed it" in headgate("tasks", "window").out


def test_a_slip_is_told_with_the_nearest_name() -> None:
    ran = headgate("tasks", "fliter")
    assert (ran.status, ran.out) == (2, "")
    assert "unknown task type 'fliter'; did you mean 'filter'?" in ran.err
    assert "choose one of" in headgate("tasks", "zzz").err


def test_the_schema_is_printed_or_written(tmp_path: Path) -> None:
    printed = headgate("schema")
    assert printed.status == 0
    Draft202012Validator.check_schema(printed.json)
    assert headgate("schema", "-o", tmp_path / "s.json").status == 0
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8")) == printed.json
    assert headgate("schema", "-o", tmp_path / "s.json").status == 2
    assert headgate("schema", "-o", tmp_path / "s.json", "--force").status == 0


def test_the_types_of_a_package_are_found(tmp_path: Path) -> None:
    env = _install(tmp_path, "shouting", PLUGIN)
    listed = process("tasks", "--json", env=env)
    assert (listed.status, listed.err) == (0, "")
    assert [facts["name"] for facts in listed.json["task_types"]][-1] == "shout"
    shown = process("tasks", "shout", env=env).out
    assert "Write a column in [capital] letters.\n\nIt adds ! where there is none.\n" in shown
    path = tmp_path / "f.yaml"
    path.write_text(
        "tasks:\n- {id: a, type: rate}\n- {id: b, type: shout, config: {column: value}, inputs: [a]}", encoding="utf-8"
    )
    assert process("validate", path, env=env).status == 0
    assert headgate("validate", path).status == 2
    assert "config.shout" in process("schema", env=env).json["$defs"]


def test_broken_packages_are_left_out_each_with_a_sentence(tmp_path: Path) -> None:
    for module, source in BROKEN.items():
        env = _install(tmp_path, module, source)
    _install(tmp_path, "shouting", PLUGIN)
    for command in (["tasks", "--json"], ["schema"]):
        ran = process(*command, env=env)
        assert ran.status == 0
        assert ran.json
        lines = ran.err.splitlines()
        assert len(lines) == len(BROKEN)
        assert all(line.startswith("headgate: task types of '") and "are left out: " in line for line in lines)
        for module in BROKEN:
            assert sum(f"'{module}:TYPES'" in line for line in lines) == 1
        named = [facts["name"] for facts in ran.json["task_types"]] if command[0] == "tasks" else []
        assert not named or named == [*(kind.name for kind in KINDS), "shout"]
