"""Calling a function that runs in a process of its own. What comes back is data, and is checked before it is used."""

from __future__ import annotations

import base64
import json
import pickle
import socket
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from headgate.errors import InputError
from headgate.model.work import BatchFunction, BatchResult, BatchTarget, Index, KeyFunction, KeyRows, Result
from headgate.tasks.heavy import np, pa
from headgate.tasks.isolated.frames import Head, as_stream, batch_of, receive, send
from headgate.tasks.isolated.starting import end_starter, start_process
from headgate.tasks.row_errors import LONGEST, FunctionRaised

__all__ = ["SealedState", "check_isolated", "end_processes", "isolated_batches", "isolated_fold"]

MOST = 64
"""Processes that a worker keeps; the one that was used longest ago goes first."""


@dataclass(frozen=True, slots=True)
class SealedState:
    """What an isolated function remembers of a key; only its own process reads it."""

    pickled: bytes


class _Process:
    """A process that serves one function; it is started when it is first called, and again after it has ended."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._connection: socket.socket | None = None

    def call(self, body: Any) -> tuple[Head, memoryview]:
        """What the function makes of something; raises :class:`FunctionRaised` if it raises or its process ends."""
        try:
            connection = self.start()
            send(connection, {}, body)
            return self._receive()
        except FunctionRaised:
            raise
        except (ConnectionError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
            self.close()
            raise FunctionRaised(f"the process of the function gave no answer ({error})") from None
        except BaseException:  # its time is up; what it does now is of no use
            self.close()
            raise

    def start(self) -> socket.socket:
        """Start it unless it runs; raises :class:`FunctionRaised` if the function cannot be loaded."""
        if self._connection is None:
            self._connection = start_process()
            send(self._connection, self._head)
            try:
                self._receive()
            except FunctionRaised:
                self.close()
                raise
        return self._connection

    def close(self) -> None:
        """Let the process be killed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _receive(self) -> tuple[Head, memoryview]:
        assert self._connection is not None
        try:
            head, body = receive(self._connection)
        except ConnectionResetError:
            head, body = {"ended": "has ended"}, memoryview(b"")
        if "ended" in head:
            self.close()
            raise FunctionRaised(f"the process of the function {str(head['ended'])[:LONGEST]}")
        if head.get("error") is not None:
            raise FunctionRaised(str(head["error"])[:LONGEST])
        return head, body


_processes: OrderedDict[str, _Process] = OrderedDict()


def _process_of(head: Head) -> _Process:
    key = json.dumps(head, sort_keys=True)
    process = _processes.get(key)
    if process is None:
        process = _processes[key] = _Process(head)
        if len(_processes) > MOST:
            _processes.popitem(last=False)[1].close()
    _processes.move_to_end(key)
    return process


def end_processes() -> None:
    """End all processes of this worker's functions."""
    while _processes:
        _processes.popitem()[1].close()
    end_starter()


def isolated_batches(config: Mapping[str, Any], target: BatchTarget) -> BatchFunction:
    """What a ``python`` task does to batches."""
    schema = base64.b64encode(target.schema.serialize()).decode()
    process = _process_of(
        {"type": "python", "config": dict(config), "schema": schema, "collect": target.collect_failed}
    )

    def work(batch: pa.RecordBatch) -> BatchResult:
        head, body = process.call(as_stream(batch))
        try:
            made = batch_of(body)
            made.validate(full=True)
            if made.schema != target.schema:
                raise ValueError("other columns")
            failed = [(int(at), str(text)[:LONGEST]) for at, text in head["failed"]]
            if any(not 0 <= at < len(batch) for at, _ in failed):
                raise ValueError("rows that are not there")
        except (ValueError, TypeError, KeyError, pa.ArrowException) as error:
            process.close()
            raise FunctionRaised(f"the process of the function gave no answer ({error})") from None
        return BatchResult(made.columns, spread(len(made), len(batch)), failed)

    return work


def spread(made: int, given: int) -> Any:
    """The row that each new one comes from.

    It is not known. If there are as many as before, it is the one in its place; otherwise those of the batch are
    stretched or thinned out evenly, which leaves the distribution of arrival times as it is.
    """
    return None if made == given else np.arange(made) * given // max(made, 1)


def isolated_fold(config: Mapping[str, Any], columns: Sequence[str], index: Index) -> KeyFunction:
    """What a ``fold`` task does to the rows of a key."""
    process = _process_of({"type": "fold", "config": dict(config), "columns": list(columns)})
    places = [index(name) for name in columns]

    def fold(state: Any, rows: KeyRows) -> tuple[Any, list[Result]]:
        kept = state.pickled if isinstance(state, SealedState) else None if state is None else pickle.dumps(state, 5)
        tuples = [tuple(row[at] for at in places) for row in rows.tuples]
        head, body = process.call(pickle.dumps((kept, tuples), 5))
        results = head.get("results")
        if not isinstance(results, list) or len(results) != len(tuples) or not all(map(_is_result, results)):
            process.close()
            raise FunctionRaised("the process of the function gave no answer")
        return SealedState(bytes(body)), results

    return fold


def _is_result(value: Any) -> bool:
    return value is None or isinstance(value, str | float)


@lru_cache(maxsize=1_000)
def check_isolated(function: str) -> None:
    """Raise :class:`InputError` unless a function can be loaded; its module is not imported here."""
    config = {"function": function, "key": ["k"], "takes": ["k"], "columns": "v double"}
    process = _Process({"type": "fold", "config": config, "columns": ["k"]})
    try:
        process.start()
    except FunctionRaised as error:
        raise InputError("NO_SUCH_FUNCTION", f"cannot load function '{function}': {error}") from None
    finally:
        process.close()
