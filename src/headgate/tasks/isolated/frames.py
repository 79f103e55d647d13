"""Messages between a worker and a function's process: a head as JSON, and bytes. Nothing in them is code."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from headgate.tasks.heavy import pa

__all__ = ["Head", "as_stream", "batch_of", "receive", "send"]

Head = dict[str, Any]
LENGTHS = struct.Struct("<QQ")
MOST_BYTES = 1 << 30
"""The longest message; whoever announces a longer one is not believed."""


def send(there: socket.socket, head: Head, body: Any = b"") -> None:
    """Send a message, whole."""
    text = json.dumps(head).encode()
    there.sendall(LENGTHS.pack(len(text), len(body)) + text)
    if len(body):
        there.sendall(body)


def receive(there: socket.socket) -> tuple[Head, memoryview]:
    """The next message; raises :class:`ConnectionError` if there is none, or it is no message."""
    of_head, of_body = LENGTHS.unpack(_exactly(there, LENGTHS.size))
    if of_head + of_body > MOST_BYTES:
        raise ConnectionError("a message that is too long")
    text = bytes(_exactly(there, of_head))
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        raise ConnectionError("no message") from None
    if not isinstance(head, dict):
        raise ConnectionError("no message")
    return head, _exactly(there, of_body)


def _exactly(there: socket.socket, count: int) -> memoryview:
    got = memoryview(bytearray(count))
    done = 0
    while done < count:
        new = there.recv_into(got[done:])
        if new == 0:
            raise ConnectionError("the connection has ended")
        done += new
    return got


def as_stream(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch with its columns' names and types."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def batch_of(body: memoryview) -> pa.RecordBatch:
    """The batch of :func:`as_stream`."""
    with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
        return stream.read_next_batch()
