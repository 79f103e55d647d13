"""Starting the processes of functions: the process that forks them is there once for all workers of an engine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

__all__ = ["end_starter", "start_process", "starter"]

NEEDED = ("PATH", "LANG", "TZ", "PYTHONPATH", "TMPDIR", "LD_LIBRARY_PATH")
PREFIX = "HEADGATE_WORKER_FUNCTIONS_"
_starter: tuple[socket.socket, subprocess.Popen[bytes]] | None = None


def starter() -> socket.socket:
    """The connection to this process's starter, or to that of the process that it was forked from."""
    global _starter
    if _starter is None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own = {name: value for name, value in os.environ.items() if name in NEEDED or name.startswith(PREFIX)}
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "headgate.tasks.isolated.starter", str(theirs.fileno())],
                env={**own, **threads, "ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Spark's daemon ends its group; this one still has folders to remove
            )
        _starter = ours, process
    return _starter[0]


def end_starter() -> None:
    """Let the starter end, unless other processes use it, and all that it has started with it."""
    global _starter
    if _starter is not None:
        connection, process = _starter
        _starter = None
        connection.close()
        process.wait()


def start_process() -> socket.socket:
    """Start a process, and return the connection to it."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            socket.send_fds(starter(), [b"start"], [theirs.fileno()])
        except OSError:  # it has ended
            end_starter()
            socket.send_fds(starter(), [b"start"], [theirs.fileno()])
    return ours
