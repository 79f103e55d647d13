"""Where an engine listens: a Unix socket in its state directory, or in a folder of the user's if that is too deep."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from headgate.errors import InputError

__all__ = ["socket_place"]

LONGEST = 100
"""Bytes of a socket's path; systems take 104 to 108."""


def socket_place(state: Path) -> Path:
    """The socket of a state directory: the same for the engine and for those who look for it.

    A path that no system would take is replaced by one in a folder that only this user can enter, named after the
    state directory.

    >>> socket_place(Path("/srv/flows")).as_posix()
    '/srv/flows/control.sock'
    """
    place = state.resolve() / "control.sock"
    if len(os.fsencode(place)) <= LONGEST:
        return place
    folder = Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        told = (
            f"{folder} is not only yours; remove it, or give a state directory with a path of at most {LONGEST} bytes"
        )
        raise InputError("CONTROL_UNSAFE", told)
    name = hashlib.blake2b(os.fsencode(place), digest_size=12).hexdigest()
    return folder / f"{name}.sock"
