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
    rows_out.json        how many rows each sink has got
    suspended.json       dataflows that were paused after a crash loop, and why
"""

from __future__ import annotations

from pathlib import Path

from headgate.errors import InputError, os_reason
from headgate.store.files import read_json, write_json
from headgate.store.lock import StateLock

__all__ = ["StateDirectory"]

VERSION = "4"
READABLE = ("3", VERSION)
"""The layouts that can be opened; :mod:`headgate.runtime.engine.upgrade` changes older ones."""


class StateDirectory:
    """The directory, locked for as long as this object is open."""

    def __init__(self, path: Path | StateLock) -> None:
        self._lock = path if isinstance(path, StateLock) else StateLock(path)
        self.path = path = self._lock.path
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

    def _check_version(self, given: Path) -> None:
        file = self.path / "version"
        if not file.exists():
            # An engine that was killed while it made the directory may have left a beginning of the version file.
            if any(not entry.name.startswith(("lock", "control", ".version")) for entry in self.path.iterdir()):
                message = f"{given} is neither empty nor a state directory of Headgate; give another directory"
                raise InputError("STATE_UNUSABLE", f"{message} with --state")
            write_json(file, int(VERSION), "version")
        self.version = str(read_json(file))
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
