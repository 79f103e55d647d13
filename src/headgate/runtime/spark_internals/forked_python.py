"""The program that Spark takes for Python: a fork of a process with its imports done, where there is one."""

from __future__ import annotations

import atexit
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headgate.runtime.spark_internals import fork_client
from headgate.runtime.spark_internals.fork_server import FORKED

__all__ = ["forked_python", "write_program"]

PROGRAM = """#!/bin/sh
case "$1 $2" in
{forked}) exec {python} -IS {client} {address} "$@" ;;
*) exec {python} "$@" ;;
esac
"""

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Settings without which libraries start threads when they are imported, which a fork does not copy."""


@dataclass(slots=True)
class _Started:
    """The server of this process, which ends with it."""

    server: subprocess.Popen[bytes] | None = None
    program: str = ""


_started = _Started()


def forked_python() -> str:
    """The program, with its server started; plain Python where there is no such system call."""
    if not hasattr(os, "pidfd_open"):
        return sys.executable
    if _started.server is None or _started.server.poll() is not None:
        _started.server, _started.program = _start(Path(tempfile.mkdtemp(prefix="headgate-python-")))
    return _started.program


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    address, program = folder / "server", folder / "python"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen(128)  # who comes while it imports waits
        server = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.fork_server", str(folder), str(listener.fileno())],
            env={**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            start_new_session=True,  # the keys of a terminal are for the engine
        )
    write_program(program, address, FORKED)
    atexit.register(_end, server)
    return server, str(program)


def write_program(path: Path, address: Path, modules: Iterable[str]) -> None:
    """Write the program: some modules run in a fork of the server that listens at an address."""
    names = {"python": sys.executable, "client": fork_client.__file__, "address": str(address)}
    quoted = {name: shlex.quote(value) for name, value in names.items()}
    forked = "|".join(f'"-m "{module}' for module in modules)
    path.write_text(PROGRAM.format(forked=forked, **quoted), encoding="utf-8")
    path.chmod(0o755)


def _end(server: subprocess.Popen[bytes]) -> None:
    if server.stdin is not None:
        server.stdin.close()
    server.wait()
