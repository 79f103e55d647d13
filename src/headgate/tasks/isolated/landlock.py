"""Which files a process may open: Linux's Landlock, which needs no rights and cannot be undone.

Folders and files are named with what may be done below them; everything else is refused. From its fourth version on it
also refuses TCP, from its sixth on signals to processes outside.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["landlock_version", "restrict_files"]

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG, PATH_BENEATH = 1, 1
O_PATH = 0o10000000

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL = 1 << 14, 1 << 15
ALL_OF_FIRST = (1 << 13) - 1
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL
READ = EXECUTE | READ_FILE | READ_DIR


def landlock_version() -> int:
    """Which version the system has; 0 for none."""
    if platform.system() != "Linux":
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, VERSION_FLAG)))


def restrict_files(
    readable: Iterable[Path], listed: Iterable[Path], writable: Iterable[Path], *, network: bool
) -> bool:
    """Let this process open nothing but this any more; whether that was possible.

    ``listed`` are folders whose names may be read, and nothing in them.
    """
    version = landlock_version()
    if version == 0:
        return False
    handled = ALL_OF_FIRST
    for since, right in ((2, 1 << 13), (3, TRUNCATE), (5, IOCTL)):
        handled |= right if version >= since else 0
    connections = 3 if version >= 4 and not network else 0
    scopes = 3 if version >= 6 else 0
    rules = struct.pack("QQQ", handled, connections, scopes)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    library = ctypes.CDLL(None, use_errno=True)
    rule_set = library.syscall(CREATE_RULESET, rules, len(rules), 0)
    if rule_set < 0:
        return False
    for places, rights in ((readable, READ), (listed, READ_DIR), (writable, handled & ~EXECUTE)):
        for place in places:
            _allow(library, rule_set, place, rights & handled)
    restricted = library.syscall(RESTRICT_SELF, rule_set, 0) == 0
    os.close(rule_set)
    return bool(restricted)


def _allow(library: ctypes.CDLL, rule_set: int, place: Path, rights: int) -> None:
    with suppress(OSError):  # what is not there need not be allowed
        there = os.open(place, O_PATH | os.O_CLOEXEC)
        try:
            given = rights if place.is_dir() else rights & OF_FILES
            library.syscall(ADD_RULE, rule_set, PATH_BENEATH, struct.pack("=Qi", given, there), 0)
        finally:
            os.close(there)
