"""The jars of the Kafka broker: fetched with Maven, pinned with checksums, kept in a cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

from headgate.errors import InputError

__all__ = ["cache_folder", "fetch_jars", "jars_folder", "missing_jars"]

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
"""What of Maven copies the dependencies of the project ``kafka.pom`` into a folder."""


def cache_folder() -> Path:
    """Where what was fetched is kept: beside the virtual environment, or among the user's caches if there is none."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix).parent / ".services"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headgate"


def jars_folder(cache: Path | None = None) -> Path:
    """The folder with the jars of this version; it is there or not."""
    version = hashlib.sha256(_of_package("kafka.sha256")).hexdigest()[:12]
    return (cache or cache_folder()) / f"kafka-{version}"


def missing_jars(folder: Path) -> list[str]:
    """The jars that are not in a folder, or are others than those that are pinned.

    >>> len(missing_jars(Path("/nowhere"))) > 40
    True
    """
    pinned = [line.split() for line in _of_package("kafka.sha256").decode().splitlines()]
    return sorted(name for digest, name in pinned if _digest(folder / name) != digest)


def fetch_jars(cache: Path | None = None) -> Path:
    """The folder of the jars, fetched if it is not there; raises :class:`InputError` where they cannot be had."""
    folder = jars_folder(cache)
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise InputError("SERVICE_UNAVAILABLE", "the Kafka broker is fetched with Maven: install Maven (command mvn)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        (Path(scratch) / "pom.xml").write_bytes(_of_package("kafka.pom"))
        command = [maven, "-q", "-B", PLUGIN, "-DoutputDirectory=jars", "-DincludeScope=runtime"]
        ran = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
        if ran.returncode:
            errors = [line for line in (ran.stdout + ran.stderr).splitlines() if "ERROR" in line]
            reason = " ".join((errors or ["no reason given"])[0].split())[:300]
            raise InputError("SERVICE_UNAVAILABLE", f"Maven could not fetch the Kafka broker: {reason}")
        _check(Path(scratch) / "jars")
        try:
            (Path(scratch) / "jars").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was as quick
                raise
    return folder


def _check(folder: Path) -> None:
    wrong = missing_jars(folder)
    if wrong:
        message = f"what Maven fetched is not what is pinned: {', '.join(wrong[:3])}; it is not used"
        raise InputError("SERVICE_UNAVAILABLE", message, {"jars": wrong})


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _of_package(name: str) -> bytes:
    return resources.files("headgate.machines.services").joinpath(name).read_bytes()
