"""The engine's state directory: one place for all that must survive, one engine at a time.

::

    version              the layout's version
    lock                 held by the running engine; names its process
    journal              all that must not be forgotten, in one order (:mod:`headgate.store.entries`)
    journal.mark         up to where the journal is known to have reached
    hosts/N.json         what the workers of keyed hosts need of plan N
    fragments/ID/        checkpoint and limits of a fragment; of windows and joins their state too
    exchange/TOPIC/      derived streams
    staging/ID/          what an epoch has written and not yet committed
    pending/SINK/        what a sink has refused and will be offered again
    used_until           until when the machines are known to have been used
    control.sock         where the running engine listens, if it does
    dead_letters/TASK/   rows for which a task raised
    rows_out.json        how many rows each sink has got
    suspended.json       dataflows that were paused after a crash loop, and why
    profiles.json        what tasks cost, by what they do, for engines to come
    level_times.json     for how long each dataflow has been within its service level
"""

from __future__ import annotations

from pathlib import Path

from headgate.errors import InputError, os_reason
from headgate.store.files import read_json, write_json
from headgate.store.journal import Journal, create_journal
from headgate.store.lock import StateLock

__all__ = ["StateDirectory"]

VERSION = "6"
"""The layout; a directory of another one is refused, and left as it is."""


WITH_SPARK_STATE = "5"
"""The layout before: the same, but for windows and joins, each of which was a fragment ``native-...``."""


class StateDirectory:
    """The directory, locked for as long as this object is open."""

    def __init__(self, path: Path | StateLock) -> None:
        self._lock = path if isinstance(path, StateLock) else StateLock(path)
        self.path = path = self._lock.path
        try:
            self._check_version(path)
            self.path.chmod(0o700)  # rows of all teams are in it; only now is it known to be ours
            for name in ("hosts", "fragments", "exchange", "staging", "pending"):
                (self.path / name).mkdir(exist_ok=True)
            self.journal = Journal(self.path / "journal")
        except OSError as error:
            self.close()
            raise InputError("STATE_UNUSABLE", f"cannot write to state directory {path}: {os_reason(error)}") from None
        except BaseException:
            self.close()
            raise

    def _check_version(self, given: Path) -> None:
        file = self.path / "version"
        if not file.exists():
            # An engine that was killed while it made the directory may have left a journal without entries.
            known = ("lock", "control", ".version", "journal")
            if any(not entry.name.startswith(known) for entry in self.path.iterdir()):
                message = f"{given} is neither empty nor a state directory of Headgate; give another directory"
                raise InputError("STATE_UNUSABLE", f"{message} with --state")
            create_journal(self.path / "journal")
            write_json(file, int(VERSION), "version")
        version = str(read_json(file))
        if version == WITH_SPARK_STATE and not any((self.path / "fragments").glob("native-*")):
            write_json(file, int(VERSION), "version")
            version = VERSION
        if version != VERSION:
            message = f"state directory {given} has version {version[:20]!r}, and this Headgate reads version {VERSION}"
            remedy = "give another directory with --state, or run the Headgate that wrote it"
            if version == WITH_SPARK_STATE:
                message = f"{message}: its windows and joins are kept in Spark's form"
                remedy = (
                    "give another directory with --state, and the dataflows read their sources again from the start"
                )
            raise InputError("STATE_VERSION", f"{message}; {remedy}")

    def fragment(self, fragment_id: str) -> Path:
        """The folder of a fragment."""
        path = self.path / "fragments" / fragment_id
        path.mkdir(exist_ok=True)
        return path

    def close(self) -> None:
        """Release the directory, so that another engine can use it."""
        if hasattr(self, "journal"):
            self.journal.close()
        self._lock.close()
