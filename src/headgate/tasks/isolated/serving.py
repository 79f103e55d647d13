"""A function's process: it gives up what it does not need, imports the function, and answers batch by batch."""

from __future__ import annotations

import base64
import gc
import importlib
import os
import pickle
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headgate.model.work import BatchTarget
from headgate.tasks.functions import load_function
from headgate.tasks.heavy import pa
from headgate.tasks.isolated.confinement import confine
from headgate.tasks.isolated.frames import Head, as_stream, batch_of, receive, send
from headgate.tasks.isolated.settings import IsolationSettings
from headgate.tasks.row_errors import error_text

__all__ = ["RowsOfKey", "serve"]

Answer = tuple[Head, Any]
Work = Callable[[memoryview], Answer]


def serve(connection: socket.socket, folder: Path, user: int | None) -> None:
    """Serve one function until the worker at the other end leaves."""
    settings = IsolationSettings.of()
    os.chdir(folder)
    os.umask(0o077)
    os.environ.clear()
    os.environ.update(HOME=str(folder), TMPDIR=str(folder), LANG="C.UTF-8")
    head, _ = receive(connection)
    may_connect = settings.may_connect(head["config"]["function"])
    confine(folder, user, settings.memory_bytes, settings.read, network=may_connect)
    importlib.invalidate_caches()
    gc.enable()
    try:
        work = _work(head)
        send(connection, {})
    except BaseException as error:  # what a module does when it is imported is its author's
        send(connection, {"error": _text(error, settings)})
        return
    while True:
        try:
            _, body = receive(connection)
        except ConnectionError:
            os._exit(0)
        try:
            answer, made = work(body)
        except BaseException as error:
            answer, made = {"error": _text(error, settings)}, b""
        send(connection, answer, made)


def _text(error: BaseException, settings: IsolationSettings) -> str:
    if isinstance(error, MemoryError):
        most = f"{settings.memory_bytes >> 20:,} MiB"
        return f"MemoryError: over its {most} of memory; see function_memory in [workers] of headgate.toml"
    return error_text(error)


def _work(head: Head) -> Work:
    from headgate.tasks.user_defined import Fold, Python, fold_work, python_work

    if head["type"] == "fold":
        return _fold(fold_work(Fold.model_validate(head["config"])), head["columns"])
    options = Python.model_validate(head["config"])
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(head["schema"])))
    function = load_function(options.function)
    call = python_work(options.over, function, options.options, BatchTarget(schema, head["collect"]))

    def work(body: memoryview) -> Answer:
        result = call(batch_of(body))
        made = pa.RecordBatch.from_arrays(list(result.columns), schema=schema)
        return {"failed": [(int(at), text) for at, text in result.failed]}, as_stream(made)

    return work


def _fold(start: Callable[[Any], Any], columns: Sequence[str]) -> Work:
    fold = start(list(columns).index)

    def work(body: memoryview) -> Answer:
        kept, tuples = pickle.loads(body)  # noqa: S301  (the worker has made it; what is kept is this author's)
        state = None if kept is None else pickle.loads(kept)  # noqa: S301
        state, results = fold(state, RowsOfKey(tuples))
        return {"results": list(results)}, pickle.dumps(state, 5)

    return work


class RowsOfKey:
    """Rows of one key."""

    def __init__(self, tuples: Sequence[tuple[Any, ...]]) -> None:
        self.tuples, self.columns = tuples, ()

    def __len__(self) -> int:
        return len(self.tuples)

    def fail(self, place: int, error: Exception) -> None:
        del place
        raise error
