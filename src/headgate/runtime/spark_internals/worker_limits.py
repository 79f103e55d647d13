"""What Spark's Python workers get of the engine's process, and how much of the machine: of a local master's only.

They run functions that authors of dataflows have written. So they do not inherit the engine's environment, cannot gain
rights by starting programs, write no core files, and have a limit of memory: a function that goes over it gets a
``MemoryError``, which fails its task as any error does.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

__all__ = [
    "LEFT_VARIABLE",
    "MEMORY_VARIABLE",
    "PASSED_VARIABLE",
    "leave_environment",
    "set_limits",
    "worker_environment",
]

MEMORY_VARIABLE, PASSED_VARIABLE = "HEADGATE_WORKER_MEMORY_BYTES", "HEADGATE_WORKER_ENVIRONMENT"
LEFT_VARIABLE = "HEADGATE_WORKER"
"""Set in a process that has left the environment of the one that started it."""

_NEEDED_TEXT = """
PATH HOME USER LANG LC_* TZ TMPDIR VIRTUAL_ENV LD_LIBRARY_PATH DYLD_* PYTHON* _PYTHON* PYSPARK_* SPARK_* ARROW_*
OMP_* OPENBLAS_* MKL_* NUMBA_* HEADGATE_WORKER*
"""
NEEDED = tuple(_NEEDED_TEXT.split())
"""The variables without which a worker does not work."""

MEMORY_BYTES = 4 << 30
FILE_BYTES = 16 << 30
PR_SET_NO_NEW_PRIVS = 38


def worker_environment(environment: Mapping[str, str], passed: Sequence[str] = ()) -> dict[str, str]:
    """The variables that workers get; ``passed`` are names and patterns of others.

    >>> worker_environment({"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x", "PGPASSWORD": "y", "CITY": "z"}, ["CITY"])
    {'PATH': '/bin', 'CITY': 'z'}
    """
    patterns = (*NEEDED, *passed)
    return {name: value for name, value in environment.items() if any(fnmatchcase(name, p) for p in patterns)}


def leave_environment() -> None:
    """Begin this program anew without the variables that workers do not get, so that no memory of them is left."""
    if LEFT_VARIABLE in os.environ:
        return
    passed = [name for name in os.environ.get(PASSED_VARIABLE, "").split(",") if name]
    os.environ[LEFT_VARIABLE] = "1"
    os.execve(sys.executable, sys.orig_argv, worker_environment(os.environ, passed))  # noqa: S606


def set_limits() -> None:
    """Limit what a worker may take; it inherits the limits of the process that it is forked from."""
    memory_bytes = int(os.environ.get(MEMORY_VARIABLE) or MEMORY_BYTES)
    for kind, most in (
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):  # a lower limit is there already
            resource.setrlimit(kind, (most, most))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
