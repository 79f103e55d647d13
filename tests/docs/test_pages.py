"""Every example in the documentation runs and gives what the page says it gives."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import typer.main

from headgate.cli.main import app
from tests.docs.pages import LANGUAGES_NOT_RUN, LANGUAGES_RUN, blocks, needs_spark_page, run_page
from tests.docs.shell import let_workers_import

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]


ON_SPARK = [page for page in PAGES if needs_spark_page(page)]
SET_UP = ("make", "source", "git", "cd", "export", "pip")


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


APPLICATIONS = {"frequent-patterns", "linear-road", "logos", "nexmark", "riotbench", "sentiment"}
"""Pages whose dataflows have Spark tests of their own in ``tests/examples``: the pages themselves take minutes."""


def _marked(page: Path) -> object:
    marks = [pytest.mark.slow] if page.stem in APPLICATIONS else []
    return pytest.param(page, id=_name(page), marks=marks)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples in it, as at the root of the project, and a terminal that is always the same."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH", "HEADGATE_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def on_shared_spark(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Engines run on the Spark that all tests share."""
    from headgate.runtime.engine import engine as engine_module

    spark = request.getfixturevalue("spark")
    monkeypatch.setattr(engine_module, "Engine", partial(engine_module.Engine, spark=spark))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    let_workers_import(spark, folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    spark.sparkContext.environment.pop("PYTHONPATH", None)
    for query in spark.streams.active:
        query.stop()


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ON_SPARK], ids=_name)
def test_examples_of_the_page_run(page: Path, folder: Path) -> None:
    run_page(page)


@pytest.mark.spark
@pytest.mark.usefixtures("on_shared_spark")
@pytest.mark.parametrize("page", [_marked(page) for page in ON_SPARK])
def test_examples_of_the_page_run_on_spark(page: Path, folder: Path) -> None:
    run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_no_block_of_the_page_is_passed_over(page: Path) -> None:
    for language, text in blocks(page):
        assert language in LANGUAGES_RUN | LANGUAGES_NOT_RUN
        assert language == "console" or not re.search(r"^\$ ", text, re.MULTILINE), "commands are in console blocks"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_what_is_not_run_is_set_up_or_a_benchmark(page: Path) -> None:
    for line in (line for language, text in blocks(page) if language == "sh" for line in text.splitlines()):
        name, *words = shlex.split(line, comments=True) or [""]
        if name == "headgate":
            assert words[0] == "bench", f"this can be run in a console block: {line}"
            typer.main.get_command(app).commands["bench"].make_context("bench", words[1:])  # type: ignore[attr-defined]
        else:
            assert name in SET_UP, f"this can be run in a console block: {line}"


def test_a_wrong_page_is_noticed(folder: Path) -> None:
    wrong = {
        "console": "$ headgate --version\nheadgate 0.0.0\n",
        "python": ">>> 1 + 1\n3\n",
        "yaml": "tasks: [{id: a, type: rat}]\n",
        "json": '{"tasks": [{"id": "a", "type": "rat"}]}\n',
        "xml": "<dataflow><PE/></dataflow>\n",
    }
    for language, text in wrong.items():
        page = folder / f"{language}.md"
        page.write_text(f"# Page\n\n```{language}\n{text}```\n")
        with pytest.raises(AssertionError, match="did not evaluate as expected"):
            run_page(page)
