"""The engine that is attacked: a program of its own, with an honest team and a hostile one, each with a token."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from headgate.api.client import EngineClient
from headgate.errors import HeadgateError
from headgate_benchmarks.tenants import hostile_functions

__all__ = ["MODULE", "SECRET", "EngineProgram"]

SECRET = "tr0ut-in-the-m1lk"
"""The value of a secret of the honest team, and of a variable of the engine's environment."""

MODULE = "mallory_functions"
"""The hostile team's own module, as the engine's users have it."""

SETTINGS = """
[allow]
read = ["in"]
write = ["{{owner}}"]
modules = ["{module}"]

[secrets.owners]
HONEST = ["honest"]

[quotas.owners.mallory]
dataflows = 20
tasks = 200
time_budget = "10s"

[workers]
memory = "1g"
"""

START_S = 180.0


class EngineProgram:
    """``headgate serve`` in a folder, and clients of its two teams."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state, self.log = folder, folder / "state", folder / "log"
        for name in ("in", "honest", "mallory"):
            (folder / name).mkdir()
        shutil.copy(Path(hostile_functions.__file__), folder / f"{MODULE}.py")
        (folder / "headgate.toml").write_text(SETTINGS.format(module=MODULE), encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None
        self.tokens: dict[str, str] = {}
        self.url = ""
        self._seen: dict[Path, tuple[int, int]] = {}

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "headgate", "serve", "--listen", "127.0.0.1:0", "--trigger", "200ms"]
        command += ["--master", "local[2]", "--state", str(self.state), "--conf", "spark.driver.memory=2g"]
        before = self.log.stat().st_size if self.log.exists() else 0
        given = {"HEADGATE_SECRET_HONEST": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, env={**os.environ, **given}, stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + START_S
        while not self._is_up(before):
            if self._process.poll() is not None or time.monotonic() > until:
                message = f"the engine did not start: {self._text(before)[-500:]}"
                raise HeadgateError("NO_ENGINE", message)
            time.sleep(0.1)

    def _is_up(self, before: int) -> bool:
        address = re.search(r"http://127\.0\.0\.1:\d+", self._text(before))
        if address is None:
            return False
        self.url = address.group()
        with suppress(HeadgateError), EngineClient(self.state, patience_s=0.0) as admin:
            for name in {"honest", "mallory"} - self.tokens.keys():
                self.tokens[name] = admin.create_token(name, "submitter", [name], None)["token"]
            admin.dataflows()
            return True
        return False

    def client(self, team: str) -> EngineClient:
        """Somebody of a team, who comes from the network."""
        return EngineClient.at(self.url, self.tokens[team])

    def _text(self, before: int = 0) -> str:
        return self.log.read_bytes()[before:].decode("utf-8", "replace")

    def deaths(self) -> int:
        """How often the supervisor has started it again."""
        return self._text().count("Starting again in")

    def ends(self) -> list[str]:
        """Why, each time."""
        return [line.strip()[:300] for line in self._text().splitlines() if "Starting again in" in line]

    def tracebacks(self) -> list[str]:
        """What the program has printed of errors that nobody handled."""
        return re.findall(r"Traceback \(most recent call last\)[\s\S]{0,2000}", self._text())

    def kill(self) -> None:
        """End it with all that it has started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)

    def crash(self) -> None:
        """End it as a failure of power does."""
        if self._process is not None:
            pids = [self._process.pid, *_below(self._process.pid)]
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait(30)

    def leaks(self) -> list[str]:
        """Files of the state and of the hostile team that hold the secret; those that have not changed are known."""
        places = (file for place in ("state", "mallory") for file in (self.folder / place).rglob("*"))
        return [str(file.relative_to(self.folder)) for file in places if self._is_new(file) and _holds(file)]

    def _is_new(self, file: Path) -> bool:
        try:
            facts = file.stat()
        except FileNotFoundError:
            return False
        seen = (facts.st_size, facts.st_mtime_ns)
        is_new = stat.S_ISREG(facts.st_mode) and self._seen.get(file) != seen
        self._seen[file] = seen
        return is_new


def _holds(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return any(SECRET.encode() in line for line in opened)
    except FileNotFoundError:
        return False


def _below(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    children: list[int] = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            children += map(int, tasks.read_text(encoding="ascii").split())
    return [*children, *(below for child in children for below in _below(child))]
