"""The page as it is in the package: small, complete, from nobody else, and what its sources build to."""

from __future__ import annotations

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


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node here to build the page with")
def test_the_page_is_what_its_sources_build_to(tmp_path: Path) -> None:
    if not (WEB / "node_modules" / ".bin" / "vite").exists():
        if not os.environ.get("CI"):
            pytest.skip("the page's packages are not installed; npm ci --prefix web installs them")
        subprocess.run(["npm", "ci", "--prefix", str(WEB)], check=True, capture_output=True)
    folder = tmp_path / "dist"
    vite = [str(WEB / "node_modules" / ".bin" / "vite"), "build", "--outDir", str(folder), "--logLevel", "error"]
    subprocess.run(vite, cwd=WEB, check=True, capture_output=True)
    assert files(folder) == files(DIST), "build it anew: npm run build --prefix web"


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node here to write the types with")
def test_the_types_of_the_page_are_those_of_the_api(tmp_path: Path) -> None:
    made = WEB / "node_modules" / ".bin" / "openapi-typescript"
    if not made.exists():
        pytest.skip("the page's packages are not installed; npm ci --prefix web installs them")
    target = tmp_path / "api-types.ts"
    api = ROOT / "docs" / "reference" / "openapi.json"
    subprocess.run([str(made), str(api), "-o", str(target), "--alphabetize"], check=True, capture_output=True)
    current = (WEB / "src" / "api-types.ts").read_text(encoding="utf-8")
    assert target.read_text(encoding="utf-8") == current, "write them anew: npm run types --prefix web"
