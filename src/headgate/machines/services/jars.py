"""Jars, such as those of the Kafka broker: fetched with Maven, pinned with checksums, kept in a cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from headgate.errors import InputError

__all__ = ["PinnedJars", "cache_folder", "kafka_jars"]

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
"""What of Maven copies the dependencies of the project ``kafka.pom`` into a folder."""


def cache_folder() -> Path:
    """Where what was fetched is kept: beside the virtual environment, or among the user's caches if there is none."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix).parent / ".services"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headgate"


@dataclass(frozen=True, slots=True)
class PinnedJars:
    """Some jars: a project of Maven that depends on them, and the SHA-256 of each, as ``sha256sum`` prints it."""

    name: str
    what: str
    pom: bytes
    pins: bytes

    def folder(self, cache: Path | None = None) -> Path:
        """The folder with exactly these jars; it is there or not."""
        return (cache or cache_folder()) / f"{self.name}-{hashlib.sha256(self.pins).hexdigest()[:12]}"

    def missing(self, folder: Path) -> list[str]:
        """The jars that are not in a folder, or are others than those that are pinned.

        >>> len(kafka_jars().missing(Path("/nowhere"))) > 40
        True
        """
        pinned = [line.split() for line in self.pins.decode().splitlines()]
        return sorted(name for digest, name in pinned if _digest(folder / name) != digest)

    def fetch(self, cache: Path | None = None) -> Path:
        """The folder of the jars, fetched if it is not there; raises :class:`InputError` where they cannot be had."""
        folder = self.folder(cache)
        if folder.is_dir():
            return folder
        maven = shutil.which("mvn")
        if maven is None:
            raise InputError("SERVICE_UNAVAILABLE", f"{self.what} is fetched with Maven: install Maven (command mvn)")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            self._fetch_into(maven, Path(scratch))
            try:
                (Path(scratch) / "jars").rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was as quick
                    raise
        return folder

    def _fetch_into(self, maven: str, scratch: Path) -> None:
        (scratch / "pom.xml").write_bytes(self.pom)
        command = [maven, "-q", "-B", PLUGIN, "-DoutputDirectory=jars", "-DincludeScope=runtime"]
        ran = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
        if ran.returncode:
            errors = [line for line in (ran.stdout + ran.stderr).splitlines() if "ERROR" in line]
            reason = " ".join((errors or ["no reason given"])[0].split())[:300]
            raise InputError("SERVICE_UNAVAILABLE", f"Maven could not fetch {self.what}: {reason}")
        wrong = self.missing(scratch / "jars")
        if wrong:
            message = f"what Maven fetched is not what is pinned: {', '.join(wrong[:3])}; it is not used"
            raise InputError("SERVICE_UNAVAILABLE", message, {"jars": wrong})


def kafka_jars() -> PinnedJars:
    """The jars of the broker."""
    package = resources.files("headgate.machines.services")
    pom, pins = (package.joinpath(f"kafka.{suffix}").read_bytes() for suffix in ("pom", "sha256"))
    return PinnedJars("kafka", "the Kafka broker", pom, pins)


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
