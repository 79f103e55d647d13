"""What the documentation lists is what the code has: generated files, commands, conditions, names."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest
import typer.main

from headgate.cli.main import app
from tests.docs.test_pages import PAGES, ROOT

# What goes wrong while a dataflow runs (the rooms runtime and tasks) is not a matter of the page on faults in files.
CONDITION = re.compile(
    r'(?:(?<!de)[Ff]ault|[Nn]otice|_stop|Error|Refused|TooManyRequests|Infeasible|NotMeasured|__init__|unknown|missing_package)\(\s*"([A-Z][A-Z_]+)"'
)


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_script", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED: dict[Path, Callable[[], str]] = _script().files()


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_generated_files_are_current(path: Path) -> None:
    current = path.read_text(encoding="utf-8") if path.exists() else None
    assert current == GENERATED[path](), f"{path.name} is out of date: run .venv/bin/python scripts/reference.py"


def test_the_published_schema_is_a_schema() -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "dataflow.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_commands_page_has_every_command_and_option() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    listed = {name: set(re.findall(r"^\| `(--[\w-]+)`", section, re.MULTILINE)) for name, section in sections.items()}
    wanted = {
        name: {
            max((option for option in parameter.opts), key=len)
            for each in (command, *getattr(command, "commands", {}).values())
            for parameter in each.params
            if parameter.param_type_name == "option" and parameter.name != "help"
        }
        for name, command in commands.items()
    }
    assert listed == wanted


def test_the_readme_has_every_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(re.findall(r"^\| `headgate ([\w-]+)", readme, re.MULTILINE)) == set(commands)


def test_the_faults_page_has_every_condition() -> None:
    source_files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    sources = [
        path.read_text(encoding="utf-8")
        for path in source_files
        if not {"runtime", "tasks"} & set(path.relative_to(ROOT).parts) or path.name == "registry.py"
    ]
    used = {condition for source in sources for condition in CONDITION.findall(source)}
    page = (ROOT / "docs" / "guides" / "faults.md").read_text(encoding="utf-8")
    listed = {
        name
        for row in re.findall(r"^\| (`[A-Z_]+`.*?) \|", page, re.MULTILINE)
        for name in row.strip("`").split("`, `")
    }
    assert used - listed == set(), "conditions that docs/guides/faults.md lacks"
    assert listed - used == set(), "conditions in docs/guides/faults.md that the code does not have"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_the_page_exist(page: Path) -> None:
    for name in set(re.findall(r"`(headgate(?:\.\w+)+)`", page.read_text(encoding="utf-8"))) - {"headgate.toml"}:
        assert _exists(name), f"{name} is not there"


def _exists(dotted: str) -> bool:
    if dotted == "headgate.task_types":  # the group of entry points
        return True
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part, None)
        return value is not None
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_of_the_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert link.startswith("https://") or (page.parent / link).exists(), f"{link} is not there"
