"""Every example in the documentation runs and gives what the page says it gives."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.pages import LANGUAGES_NOT_RUN, LANGUAGES_RUN, languages, run_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_the_page_run(page: Path, folder: Path) -> None:
    run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_of_the_page_is_passed_over(page: Path) -> None:
    assert languages(page) <= LANGUAGES_RUN | LANGUAGES_NOT_RUN


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
