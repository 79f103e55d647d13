"""Forks processes from one that has imported everything: engines, and the Python processes that Spark starts.

A line on standard input is a JSON object with ``program``, ``arguments``, ``log`` and ``folder``: an engine, a session
of its own that runs ``headgate`` or another module with a ``main``. The answer is its process id.

Spark starts Python once for each query, each data source and each kind of worker, and each imports for a second. Here,
the interpreter that it is given is a small program (:mod:`tests.judge.interpreter`), which asks this server on a socket
for a fork with its arguments, environment and files, and lives as long as that. What is killed is the fork.
"""

from __future__ import annotations

import array
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import warnings
from typing import Any

import pandas  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
import pyspark.daemon
import pyspark.sql.streaming.python_streaming_source_runner
import pyspark.sql.streaming.transform_with_state_driver_worker
import pyspark.sql.worker.create_data_source
import pyspark.sql.worker.lookup_data_sources
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker  # noqa: F401

import headgate.api.application
import headgate.api.server
import headgate.cli.main
import headgate.runtime.engine.engine
import headgate.runtime.epochs.staging
import headgate.runtime.keyed.host
import headgate.tasks.frames  # noqa: F401
from headgate.runtime.engine import upkeep
from headgate.runtime.file_source import driver
from headgate.runtime.spark_internals.worker_limits import LEFT_VARIABLE
from tests.judge.sabotage import SABOTAGES


def _engine(program: str, arguments: list[str], log: str, folder: str) -> None:
    """Become an engine."""
    os.setsid()
    os.chdir(folder)
    with open(os.devnull, "rb") as nothing, open(log, "ab") as file:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["headgate", *arguments]
    importlib.import_module(program).main()


def _python(asker: socket.socket, length: bytes, files: list[int]) -> None:
    """Become what Spark has started."""
    asked = b""
    while len(asked) < int.from_bytes(length):
        asked += asker.recv(1 << 16)
    (module, *arguments), environment, folder = json.loads(asked)
    asker.sendall(os.getpid().to_bytes(8))
    asker.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.environ[LEFT_VARIABLE] = "1"  # what begins anew would begin this server
    sys.path += [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
    sys.argv = [module, *arguments]
    warnings.simplefilter("ignore", RuntimeWarning)  # that the module is there already
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _accepted(listener: socket.socket) -> tuple[socket.socket, bytes, list[int]]:
    asker, _ = listener.accept()
    length, rights, *_ = asker.recvmsg(8, socket.CMSG_SPACE(12))
    return asker, length, array.array("i", rights[0][2]).tolist()


def _forked(become: Any, *arguments: Any) -> int:
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    status = 1
    try:
        become(*arguments)
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(status)


def _serve_python(listener: socket.socket) -> None:
    """In a process of its own, so that its children are those of Spark."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    while True:
        asker, length, files = _accepted(listener)
        _forked(_python, asker, length, files)
        asker.close()
        for file in files:
            os.close(file)


def _lower_limits() -> None:
    """What an engine comes to after hours comes here after minutes, so that it is killed there too."""
    driver.MOST_PLANS = 3
    upkeep.LEAST_BYTES = 60_000


def _serve(address: str) -> None:
    _lower_limits()
    if sabotage := os.environ.get("HEADGATE_JUDGE_SABOTAGE"):
        SABOTAGES[sabotage]()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    gc.collect()
    gc.freeze()
    python = os.fork()
    if python == 0:
        _serve_python(listener)
    print(python, flush=True)
    for line in sys.stdin:
        print(_forked(lambda asked: _engine(**asked), json.loads(line)), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
