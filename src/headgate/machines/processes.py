"""Processes that survive their parent (Linux).

A process is known by its number, when it started and which boot of the machine that was in: a number that now belongs
to another process is never mistaken for it. All its children carry the same mark in their environment.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MARK", "Process", "end", "is_stopped", "marked", "oldest", "reap", "start"]

MARK = "HEADGATE_MACHINE"
"""The environment variable by which the processes of a machine are known."""

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was started, whether or not it still runs."""

    pid: int
    started: int
    """In ticks since the machine's boot."""

    boot: str

    def is_alive(self) -> bool:
        """Whether that very process runs; a zombie does not."""
        stat = _stat(self.pid)
        return stat is not None and stat[0] != "Z" and stat[2] == self.started and _boot() == self.boot

    def send(self, number: signal.Signals) -> bool:
        """Send it a signal, if it runs; returns whether it did."""
        if not self.is_alive():
            return False
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
            return True
        return False

    def has_children(self) -> bool:
        """Whether processes run that it has started."""
        stats = (_stat(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdigit())
        return any(stat is not None and stat[0] != "Z" and stat[1] == self.pid for stat in stats)

    def as_dict(self) -> dict[str, object]:
        return {"pid": self.pid, "started": self.started, "boot": self.boot}


def start(
    command: Sequence[str], mark: str, log: Path, environment: Mapping[str, str], user: str | None = None
) -> Process:
    """Start a process in a session of its own, so that no terminal ends it; its output is appended to a file.

    ``user`` is who runs it, if not the one who runs this process; it starts in the folder of the log then.
    """
    with log.open("ab") as file:
        begun = subprocess.Popen(
            command,
            cwd=None if user is None else log.parent,
            user=user,
            group=user and pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else (),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**environment, MARK: mark},
            start_new_session=True,
        )
    _WAITED_FOR.append(begun)  # or Python warns about an unreaped child
    stat = _stat(begun.pid)
    return Process(begun.pid, stat[2] if stat else 0, _boot())


_WAITED_FOR: list[subprocess.Popen[bytes]] = []


def is_stopped(pid: int) -> bool:
    """Whether a process has been stopped, or is gone."""
    stat = _stat(pid)
    return stat is None or stat[0] in "TtZX"


def marked(mark: str) -> list[int]:
    """The ids of all processes with a mark."""
    wanted = f"{MARK}={mark}".encode()
    return [
        int(entry.name)
        for entry in PROC.iterdir()
        if entry.name.isdigit() and wanted in _environment(entry).split(b"\0")
    ]


def oldest(mark: str) -> Process | None:
    """The first process with a mark that was started, which has started the others; none if none runs."""
    stats = {pid: stat for pid in marked(mark) if (stat := _stat(pid)) is not None and stat[0] != "Z"}
    if not stats:
        return None
    pid = min(stats, key=lambda each: (stats[each][2], each))
    return Process(pid, stats[pid][2], _boot())


def end(mark: str, patience_s: float = 10.0, sleep: Callable[[float], None] = time.sleep) -> int:
    """End all processes with a mark, by force after a while; returns their number."""
    reap()
    pids = marked(mark)
    for number in (signal.SIGTERM, signal.SIGCONT):  # one that is stopped hears of its end when it goes on
        _signal(pids, number)
    until = time.monotonic() + patience_s
    while marked(mark) and time.monotonic() < until:
        _signal(marked(mark), signal.SIGCONT)
        reap()
        sleep(0.05)
    while left := marked(mark):
        _signal(left, signal.SIGKILL)
        reap()
        sleep(0.02)
    return len(pids)


def _signal(numbers: Sequence[int], number: signal.Signals) -> None:
    for pid in numbers:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def reap() -> None:
    """Let the system forget child processes that have ended: to others they look as if they ran."""
    _WAITED_FOR[:] = [process for process in _WAITED_FOR if process.poll() is None]


def _environment(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()  # empty for one that has ended
    except OSError:
        return b""


def _stat(pid: int) -> tuple[str, int, int] | None:
    """State, parent and start of a process."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1]), int(fields[19])


def _boot() -> str:
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
