"""What the built documentation needs: formulas are MathML, and nothing comes from the network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

converter = pytest.importorskip("latex2mathml.converter")

DOCS = Path(__file__).resolve().parents[2] / "docs"
SETTINGS = f"""\
import sys

sys.path.insert(0, {str(DOCS / "_ext")!r})
extensions = ["myst_parser", "mathml", "offline"]
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"
html_theme = "furo"
"""


def _build(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    (folder / "conf.py").write_text(SETTINGS, encoding="utf-8")
    (folder / "index.md").write_text(page, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "-b", "html", str(folder), str(folder / "out")]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)


def test_formulas_are_drawn_by_the_browser(tmp_path: Path) -> None:
    done = _build(
        tmp_path, "# Page\n\nLet $x$ be\n\n$$ x = \\frac{\\lambda}{\\mu} $$\n\n[A link](https://example.org).\n"
    )
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert html.count("<math") == 2
    assert "<mfrac>" in html


def test_a_page_that_loads_something_is_refused(tmp_path: Path) -> None:
    page = '# Page\n\n```{raw} html\n<script src="https://cdn.example/x.js"></script>\n```\n'
    done = _build(tmp_path, page)
    assert done.returncode != 0
    assert "index.html loads https://cdn.example/x.js" in done.stderr


def test_every_formula_of_the_pages_can_be_converted() -> None:
    """What the converter does not know it would show as source."""
    for page in DOCS.rglob("*.md"):
        text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for formula in re.findall(r"\$\$(.+?)\$\$|(?<!\$)\$(?! )([^$\n]+)\$", text, re.DOTALL):
            assert "\\" not in converter.convert(next(filter(None, formula))).replace("&#x0005C;", "\\"), (
                page,
                formula,
            )
