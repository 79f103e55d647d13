"""The lock of a state directory: held by a supervisor and the engine that it forks, until both have ended."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import time
from pathlib import Path

from headgate.errors import InputError, os_reason

__all__ = ["StateLock"]

LEAVE_S = 5.0
"""How long an engine whose supervisor has ended may take to end."""


class StateLock:
    """A locked directory; raises :class:`InputError` with the process that holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = (self.path / "lock").open("a+", encoding="utf-8")
        except OSError as error:
            raise InputError("STATE_UNUSABLE", f"cannot use {path} as state directory: {os_reason(error)}") from None
        until = time.monotonic() + LEAVE_S
        while not self._taken():
            self._file.seek(0)
            holder = self._file.read().strip()
            # An engine whose supervisor was killed ends in a moment, and a client may be looking whether it is held.
            if not _is_gone(holder) or time.monotonic() > until:
                self._file.close()
                message = f"state directory {path} is in use by {holder or 'another process'}; stop that one, or give"
                raise InputError("STATE_IN_USE", f"{message} another directory with --state")
            time.sleep(0.02)
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        self._file.flush()

    def _taken(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Release the directory, unless a forked process has it too."""
        self._file.close()


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
