"""Files that commands are tried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.samples import ENDINGS, TEXTS

BROKEN = "name: broken\ntasks:\n- {id: a, type: rate}\n- {id: b, type: fliter, inputs: [a]}\n"


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    """A valid dataflow."""
    path = tmp_path / "flow.yaml"
    path.write_text(TEXTS["yaml"], encoding="utf-8")
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A dataflow with one fault, on line 4."""
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN, encoding="utf-8")
    return path


@pytest.fixture
def flows(tmp_path: Path) -> dict[str, Path]:
    """The same valid dataflow in every format."""
    found = {}
    for form, text in TEXTS.items():
        found[form] = tmp_path / f"all{ENDINGS[form]}"
        found[form].write_text(text, encoding="utf-8")
    return found
