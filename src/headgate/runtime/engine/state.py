"""The engine's state directory: one place for all that must survive, one engine at a time.

::

    version              the layout's version
    lock                 held by the running engine; names its process
    snapshots/N.json     plan snapshots, numbered
    hosts/N.json         what the workers of keyed hosts need of plan N
    fragments/ID/        checkpoint, plan log and last commit of a fragment
    exchange/TOPIC/      derived streams
    staging/ID/          what an epoch has written and not yet committed
    pending/SINK/        what a sink has refused and will be offered again
    usage/               who has used the machines, and for how long
    control.sock         where the running engine listens, if it does
    requests.jsonl       the answers of the last day, by request id
    dead_letters/TASK/   rows for which a task raised
"""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from headgate.errors import InputError, os_reason
from headgate.store.files import write_json

__all__ = ["StateDirectory"]

VERSION = "3"


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
            for name in ("snapshots", "hosts", "fragments", "exchange", "staging", "pending"):
                (self.path / name).mkdir(exist_ok=True)
        except OSError as error:
            self.close()
            told = (error.strerror or str(error)).lower()
            raise InputError("STATE_UNUSABLE", f"cannot write to state directory {path}: {told}") from None
        except BaseException:
            self.close()
            raise

    def _take_lock(self, given: Path) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            holder = self._lock.read().strip() or "another process"
            self._lock.close()
            told = (
                f"state directory {given} is in use by {holder}; stop that one, or give another directory with --state"
            )
            raise InputError("STATE_IN_USE", told) from None
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        self._lock.flush()

    def _check_version(self, given: Path) -> None:
        file = self.path / "version"
        if not file.exists():
            # An engine that was killed while it made the directory may have left a beginning of the version file.
            if any(entry.name != "lock" and not entry.name.startswith(".version") for entry in self.path.iterdir()):
                told = (
                    f"{given} is neither empty nor a state directory of Headgate; give another directory with --state"
                )
                raise InputError("STATE_UNUSABLE", told)
            write_json(file, int(VERSION))
        found = file.read_text(encoding="utf-8").strip()
        if found != VERSION:
            told = f"state directory {given} has version {found[:20]!r} and this Headgate reads version {VERSION}"
            raise InputError(
                "STATE_VERSION", f"{told}; give another directory with --state, or the Headgate that wrote it"
            )

    def fragment(self, fragment_id: str) -> Path:
        """The folder of a fragment."""
        path = self.path / "fragments" / fragment_id
        path.mkdir(exist_ok=True)
        return path

    def close(self) -> None:
        """Let another engine have the directory."""
        self._lock.close()
