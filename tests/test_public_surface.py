"""What ``import headgate`` offers, how quickly, and what it leaves unimported."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import headgate

HEAVY = ("pyspark", "pandas", "pyarrow", "numpy", "sqlglot", "igraph", "pydantic", "yaml", "rich", "typer")
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(headgate.__path__, "headgate.", onerror=lambda _: None)
    if not module.name.endswith("__main__")
)


def _source(module: str) -> ast.Module:
    path = Path(headgate.__file__).parent.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def _python(source: str) -> str:
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_importing_takes_less_than_0_3_s() -> None:
    source = "import time\nt = time.perf_counter()\nimport headgate\nprint(time.perf_counter() - t)"
    assert min(float(_python(source)) for _ in range(5)) < 0.3


def test_importing_imports_nothing_heavy() -> None:
    found = _python(f"import sys, headgate\nprint([name for name in {HEAVY!r} if name in sys.modules])")
    assert found.strip() == "[]"


def test_reading_a_dataflow_imports_neither_spark_nor_pandas() -> None:
    heavy = ("pyspark", "pandas", "pyarrow")
    text = "tasks: [{id: a, type: rate}, {id: b, type: filter, config: {where: value > 1}, inputs: [a]}]"
    found = _python(
        f"import sys, headgate\nheadgate.sign(headgate.parse({text!r}, 'yaml').dataflow)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    assert found.strip() == "[]"


@pytest.mark.parametrize("name", headgate.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(headgate, name) is not None
    assert name in dir(headgate) or name in headgate.__all__


def test_every_room_can_be_the_first_to_be_imported() -> None:
    rooms = [name for name in MODULES if name.count(".") == 1 and not name.startswith("headgate.runtime")]
    assert "headgate.documents" in rooms
    source = f"""
import sys
for name in {[*rooms, "headgate.documents.check.report", "headgate.documents.document", "headgate.cli.main"]!r}:
    for loaded in [other for other in sys.modules if other.startswith("headgate")]:
        del sys.modules[loaded]
    __import__(name)
"""
    _python(source)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        headgate.nonsense  # noqa: B018


def test_the_names_are_those_that_tools_see() -> None:
    imported = {
        alias.name for node in ast.walk(_source("headgate")) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert set(headgate.__all__) - {"__version__"} == set(headgate._HOMES)
    assert set(headgate.__all__) - {"__version__"} <= imported


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert headgate.__version__ == version("headgate")


@pytest.mark.parametrize("name", [name for name in MODULES if not name.rpartition(".")[2].startswith("_")])
def test_every_module_says_what_it_is_for_and_what_is_public(name: str) -> None:
    tree = _source(name)
    assert ast.get_docstring(tree)
    listed = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets)
    ]
    defines = any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body)
    assert listed or not defines
    names = {name for names in listed for name in names}
    private = {name for name in names if name.startswith("_") and name != "__version__"}
    assert private == set()


@pytest.mark.parametrize(
    "name",
    [name for name in MODULES if not name.startswith(("headgate.runtime", "headgate.tasks", "headgate_benchmarks"))],
)
def test_every_public_name_of_a_module_is_there(name: str) -> None:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public)
