"""The engine's state directory: one place for all that must survive, one engine at a time.

::

    version              the layout's version
    lock                 held by the running engine; names its process
    dataflows/ID.json    submitted dataflows, each once
    snapshots/N.json     plan snapshots, numbered; they refer to dataflows
    hosts/N.json         what the workers of keyed hosts need of plan N
    fragments/ID/        checkpoint, plan log and last commit of a fragment
    exchange/TOPIC/      derived streams
    staging/ID/          what an epoch has written and not yet committed
    pending/SINK/        what a sink has refused and will be offered again
    usage/               who has used the machines, and for how long
    control.sock         where the running engine listens, if it does
    requests.jsonl       the answers of the last day, by request id
    dead_letters/TASK/   rows for which a task raised
    suspended.json       dataflows that were paused after a crash loop, and why
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import time
from pathlib import Path

from headgate.errors import InputError, os_reason
from headgate.store.files import write_json

__all__ = ["StateDirectory"]

VERSION = "4"
READABLE = ("3", VERSION)
"""The layouts that can be opened; :mod:`headgate.runtime.engine.upgrade` changes older ones."""

LEAVE_S = 5.0
"""How long an engine whose supervisor has ended may take to end."""


class StateDirectory:
    """The directory, locked for as long as this object is open."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / "lock").open("a+", encoding="utf-8")
        except OSError as error:
            raise InputError("STATE_UNUSABLE", f"cannot use {path} as state directory: {os_reason(error)}") from None
        self._take_lock(path)
        try:
            self._check_version(path)
            for name in ("dataflows", "snapshots", "hosts", "fragments", "exchange", "staging", "pending"):
                (self.path / name).mkdir(exist_ok=True)
        except OSError as error:
            self.close()
            raise InputError("STATE_UNUSABLE", f"cannot write to state directory {path}: {os_reason(error)}") from None
        except BaseException:
            self.close()
            raise

    def _take_lock(self, given: Path) -> None:
        until = time.monotonic() + LEAVE_S
        while not self._locked():
            self._lock.seek(0)
            holder = self._lock.read().strip()
            # An engine whose supervisor was killed ends in a moment, and a client may be looking who holds the lock.
            if not _is_gone(holder) or time.monotonic() > until:
                self._lock.close()
                message = f"state directory {given} is in use by {holder or 'another process'}; stop that one, or give"
                raise InputError("STATE_IN_USE", f"{message} another directory with --state") from None
            time.sleep(0.02)
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        self._lock.flush()

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _check_version(self, given: Path) -> None:
        file = self.path / "version"
        if not file.exists():
            # An engine that was killed while it made the directory may have left a beginning of the version file.
            if any(entry.name != "lock" and not entry.name.startswith(".version") for entry in self.path.iterdir()):
                message = f"{given} is neither empty nor a state directory of Headgate; give another directory"
                raise InputError("STATE_UNUSABLE", f"{message} with --state")
            write_json(file, int(VERSION), "version")
        self.version = file.read_text(encoding="utf-8").strip()
        if self.version not in READABLE:
            message = f"state directory {given} has version {self.version[:20]!r}, and this Headgate reads"
            remedy = "give another directory with --state, or run the Headgate that wrote it"
            raise InputError("STATE_VERSION", f"{message} versions {' and '.join(READABLE)}; {remedy}")

    def is_current(self) -> None:
        """Note that the directory has this Headgate's layout."""
        write_json(self.path / "version", int(VERSION), "version")
        self.version = VERSION

    def fragment(self, fragment_id: str) -> Path:
        """The folder of a fragment."""
        path = self.path / "fragments" / fragment_id
        path.mkdir(exist_ok=True)
        return path

    def close(self) -> None:
        """Release the directory, so that another engine can use it."""
        self._lock.close()


def _is_gone(holder: str) -> bool:
    """Whether the process that a lock names has ended; also if it names none."""
    match = re.fullmatch(r"process (\d+) on (.*)", holder)
    if match is None or match[2] != socket.gethostname():
        return not holder
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False
