"""What a process gives up before it runs a function of somebody's: rights, files, network, programs, memory."""

from __future__ import annotations

import ctypes
import os
import resource
import site
import stat
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from headgate.tasks.isolated.landlock import landlock_version, restrict_files
from headgate.tasks.isolated.seccomp import filter_calls

__all__ = ["confine", "confinement_gaps", "user_of"]

PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE = 38, 4
CAPABILITIES_VERSION = 0x20080522
FIRST_USER = 1 << 30
"""From here on no system has users; each process is one of its own."""

FILE_BYTES, FILES, THREADS = 1 << 30, 256, 256
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone")
OF_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki", "/etc/gai.conf")


def confine(folder: Path, user: int | None, memory_bytes: int, more: Sequence[Path], *, network: bool) -> None:
    """Give up everything but what a function over rows needs; there is no way back."""
    readable, listed = list(map(Path, (*DEVICES, *SYSTEM))), []
    for place in _import_places():
        if _is_installation(place):
            readable.append(place)
        else:
            listed.append(place)
            readable += _modules(place)
    readable += [*more, *(map(Path, OF_NETWORK) if network else ())]
    limits = [
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CORE, 0),
    ]
    if user is not None:
        limits.append((resource.RLIMIT_NPROC, THREADS))
    for kind, most in limits:
        with suppress(ValueError, OSError):  # a lower limit is there already
            resource.setrlimit(kind, (most, most))
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    library = ctypes.CDLL(None)
    library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    library.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    _drop_capabilities(library)
    restrict_files(readable, listed, [folder, Path("/dev/null")], network=network)
    filter_calls(network=network)


def user_of(process: int) -> int | None:
    """The user that a process becomes: one of its own if this one is root, and others may read what it imports."""
    if os.geteuid() != 0 or not all(_is_for_all(place) for place in _import_places()):
        return None
    return FIRST_USER + process


def confinement_gaps() -> list[str]:
    """What this system does not allow, as sentences; what of it is possible is tried in a process that ends then."""
    gaps = []
    if landlock_version() == 0:
        gaps.append("The system has no Landlock: functions of dataflows can read what the engine's user can read.")
    if not _in_child(lambda: filter_calls(network=False)):
        gaps.append("The system filters no calls: functions of dataflows can use the network and start programs.")
    if os.geteuid() == 0 and user_of(0) is None:
        closed = next(str(place) for place in _import_places() if not _is_for_all(place))
        gaps.append(f"Functions of dataflows run as the engine's user, because others cannot read {closed}.")
    return gaps


def _in_child(tried: object) -> bool:
    child = os.fork()
    if child == 0:
        works = False
        with suppress(BaseException):
            ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            works = bool(tried())  # type: ignore[operator]
        os._exit(0 if works else 1)
    return os.waitpid(child, 0)[1] == 0


def _import_places() -> Iterator[Path]:
    """The interpreter's own folders, and those of ``sys.path``."""
    named = dict.fromkeys((sys.prefix, sys.base_prefix, *site.getsitepackages(), *(p or "." for p in sys.path)))
    return (Path(place).resolve() for place in named if Path(place).exists())


def _is_installation(place: Path) -> bool:
    """Whether somebody has installed what is there, or only works in it."""
    return any(place.is_relative_to(Path(root).resolve()) for root in (sys.prefix, sys.base_prefix))


def _modules(place: Path) -> list[Path]:
    """The modules and packages of a folder; what else is in it, such as an engine's state, is nobody's business."""
    if not place.is_dir():
        return [place]
    return [
        one
        for one in place.iterdir()
        if one.suffix in (".py", ".so", ".pyc") or ((one / "__init__.py").is_file() and one.is_dir())
    ]


def _is_for_all(place: Path) -> bool:
    with suppress(OSError):
        ways = all(above.stat().st_mode & stat.S_IXOTH for above in place.parents)
        return ways and bool(place.stat().st_mode & stat.S_IROTH)
    return False


def _drop_capabilities(library: ctypes.CDLL) -> None:
    header, none = struct.pack("Ii", CAPABILITIES_VERSION, 0), bytes(24)
    library.capset(header, none)
