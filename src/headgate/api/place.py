"""Where an engine listens: a Unix socket in its state directory, or in a private folder if that path is too long."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path

from headgate.errors import InputError

__all__ = ["is_supervised", "socket_place"]

LONGEST = 100
"""Bytes of a socket's path; operating systems allow 104 to 108."""


def socket_place(state: Path) -> Path:
    """The socket of a state directory, the same for the engine and its clients.

    A path that is too long is replaced by one in a folder that only this user can enter.

    >>> socket_place(Path("/srv/flows")).as_posix()
    '/srv/flows/control.sock'
    """
    place = state.resolve() / "control.sock"
    if len(os.fsencode(place)) <= LONGEST:
        return place
    folder = Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    rights = folder.lstat()
    if rights.st_uid != os.getuid() or rights.st_mode & 0o077:
        message = f"Other users can enter {folder}. Remove it, or use a state directory with a shorter path."
        raise InputError("CONTROL_UNSAFE", message)
    name = hashlib.blake2b(os.fsencode(place), digest_size=12).hexdigest()
    return folder / f"{name}.sock"


def is_supervised(state: Path) -> bool:
    """Whether a process holds a state directory: its supervisor, or an engine without one."""
    try:
        with (state / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
