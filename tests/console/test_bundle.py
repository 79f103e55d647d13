"""The page as it is in the package: small, complete, from nobody else, and what its sources build to."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB, DIST = ROOT / "web", ROOT / "src" / "headgate" / "web" / "dist"
MOST_BYTES = 80_000


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_page_is_small() -> None:
    sizes = {name: len(gzip.compress(content, 9)) for name, content in files(DIST).items()}
    assert sum(sizes.values()) <= MOST_BYTES, sizes
    assert {"index.html", "favicon.svg"} <= set(sizes)


def test_the_page_loads_nothing_from_elsewhere_and_has_no_inline_script() -> None:
    built = files(DIST)
    page = built["index.html"].decode()
    assert re.findall(r"<script[^>]*>([^<]*)</script>", page) == [""]
    named = re.findall(r"(?:src|href)=\"([^\"]*)\"", page)
    assert named
    assert all(name.startswith("/") and name.lstrip("/") in built for name in named), named
    for name, content in built.items():
        if name.endswith((".js", ".css", ".html")):
            addresses = set(re.findall(r"https?://[\w.-]+", content.decode()))
            assert addresses <= {"http://www.w3.org"}, f"{name}: names of XML, and nothing else"


def test_the_lock_file_has_no_addresses() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    assert all("resolved" not in package for package in lock["packages"].values())
    assert sum("integrity" in package for package in lock["packages"].values()) > 10
    wanted = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    versions = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert all(re.fullmatch(r"[\d.]+", version) for version in versions.values()), "exact versions"


def test_the_page_is_what_its_sources_build_to(tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    vite = [_tool("vite"), "build", "--outDir", str(folder), "--logLevel", "error"]
    subprocess.run(vite, cwd=WEB, check=True, capture_output=True)
    assert files(folder) == files(DIST), "build it anew: npm run build --prefix web"


def test_the_types_of_the_page_are_those_of_the_api(tmp_path: Path) -> None:
    target = tmp_path / "api-types.ts"
    api = ROOT / "docs" / "reference" / "openapi.json"
    subprocess.run(
        [_tool("openapi-typescript"), str(api), "-o", str(target), "--alphabetize"], check=True, capture_output=True
    )
    current = (WEB / "src" / "api-types.ts").read_text(encoding="utf-8")
    assert target.read_text(encoding="utf-8") == current, "write them anew: npm run types --prefix web"


def _tool(name: str) -> str:
    """A tool of the page's packages, which are installed where everything must be tested."""
    if shutil.which("node") is None:
        pytest.skip("no Node here to build the page with")
    made = WEB / "node_modules" / ".bin" / name
    if not made.exists():
        if not os.environ.get("CI"):
            pytest.skip("the page's packages are not installed; npm ci --prefix web installs them")
        with (WEB / "package.json").open("rb") as one_at_a_time:
            fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
            if not made.exists():
                subprocess.run(["npm", "ci", "--prefix", str(WEB)], check=True, capture_output=True)
    return str(made)
