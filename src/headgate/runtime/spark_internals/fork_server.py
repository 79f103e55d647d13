"""The process that the readers of sources are forked from, with their imports done.

    python -m headgate.runtime.spark_internals.fork_server FOLDER

Spark starts Python for the reader of each query and for each kind of planning, and each imports for half a second of
CPU before it does anything. A fork has all that, and shares its memory. The server ends with the process that has
started it, whose end of a pipe is the standard input; the socket that it listens on is given to it.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import warnings
from pathlib import Path

__all__ = ["FORKED", "serve"]

FORKED = (
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
)
"""What Spark starts that a fork does. Workers have a daemon of their own: :mod:`.daemon`."""

IMPORTED = (
    *FORKED,
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyarrow.compute",
    "pyarrow.parquet",
    "headgate.runtime.exchange.files",
    "headgate.runtime.file_source.source",
    "headgate.runtime.kafka_source.source",
    "headgate.runtime.table_source.source",
    "headgate.tasks.replay",
)


def serve(listener: socket.socket) -> None:
    """Import, and fork what is asked for until standard input ends."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    for name in IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
    gc.collect()
    gc.freeze()  # a child that collects would copy every page that it looks at
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        asker, _ = listener.accept()
        try:
            length, rights, *_ = asker.recvmsg(8, socket.CMSG_SPACE(12))
            files = array.array("i", rights[0][2]).tolist()
        except (OSError, IndexError):  # whoever asked has gone
            asker.close()
            continue
        if os.fork() == 0:
            listener.close()
            _become(asker, int.from_bytes(length), files)
        asker.close()
        for file in files:
            os.close(file)


def _become(asker: socket.socket, length: int, files: list[int]) -> None:
    """Be what Spark has started, and end."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        asked = b""
        while len(asked) < length and (part := asker.recv(1 << 16)):
            asked += part
        (module, *arguments), environment, folder = json.loads(asked)
        asker.sendall(os.getpid().to_bytes(8))
        asker.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.path += [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
        sys.argv = [module, *arguments]
        warnings.simplefilter("ignore", RuntimeWarning)  # that the module is there already
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    try:
        serve(socket.socket(fileno=int(sys.argv[2])))
    finally:
        shutil.rmtree(Path(sys.argv[1]), ignore_errors=True)
