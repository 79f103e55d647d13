"""Durable steps: every write that recovery depends on has a name, so that a test can end the process there.

The interface::

    with step("commit") as point:  # the process may end here ("before"), or as the block is left ("after")
        for part in point.parts(data):  # the data; the process may end when half of it is written ("half")
            os.write(file, part)
        point.halfway()  # where a step is not one write: the process may end here ("half")

A name is an entry of :data:`STEPS`; the writers of :mod:`headgate.store.files` take one. A write that makes several
things durable has several: ``step("answer", "snapshot")``.

The environment variable :data:`VARIABLE` names a file. When that file is there and has a line ``MOMENT NAME COUNT``,
such as ``half commit 3``, a process kills itself at its third commit from then on, and renames the file to
``FILE.half.commit.ended``: one process ends, once, at the first line that it comes to. Without the variable a step
costs a comparison.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

__all__ = ["MOMENTS", "STEPS", "VARIABLE", "DurableStep", "step"]

VARIABLE = "HEADGATE_END_AT"
MOMENTS = ("before", "half", "after")

STEPS: Mapping[str, str] = {
    "version": "the layout of the state directory",
    "dataflow": "a submitted dataflow",
    "hosts": "what the workers of keyed hosts need of a plan",
    "snapshot": "a plan snapshot: its change is accepted",
    "fragment": "where a new fragment begins to read its topics",
    "file-plan": "which files a batch of a file source has; in the Python process of the source",
    "file-memory": "which files a file source has read; there too",
    "catch-up-bound": "where the past of a dataflow ends that joins a running source",
    "kafka-begun": "where the first batch of a Kafka source begins; in the Python process of the source",
    "table-begun": "where the first batch of a source that is a table begins; there too",
    "topics": "which topics a host of windows and joins reads",
    "staged-file": "rows that an epoch puts out; in a Python worker",
    "state-file": "what a window or a join keeps of an epoch, or of several that are merged; in a Python worker",
    "state-collected": "a file of a window's or a join's state that no commit names any more is gone",
    "commit": "the outputs of an epoch: it is never run again",
    "batch-files": "rows that move into a topic",
    "batch": "the description of a topic's batch",
    "head": "the last batch of a topic: its reader sees it",
    "follow": "where in a topic the rows go that have waited for a past",
    "position": "up to which batch a topic has been read",
    "first": "the oldest batch that a topic still has",
    "delivery": "rows that move to a sink",
    "outbox-files": "rows that a sink has refused",
    "outbox": "the description of rows that a sink has refused",
    "outbox-emptied": "a sink has taken what it had refused",
    "delivered": "all outputs of an epoch are where they belong",
    "redriven": "that rows which failed were offered again, with the commit of what came of them",
    "dead-letters": "rows for which a task raised",
    "dead-letter-counts": "how many rows a task has left out",
    "fragment-removed": "a fragment that nobody needs is gone",
    "answer": "the answer to a request",
    "token": "a token that requests may carry",
    "journal": "the journal without what nobody needs any more",
    "usage": "who uses the machines from now on",
    "machine": "what happened to a machine",
    "decision": "what a policy has decided, before anything of it is done",
    "step": "a step of a decision has begun, is done or has failed",
    "decision-ended": "nothing of a decision is left to be done, or it was compared with what came of it",
}
"""What each step makes durable."""

_AIM = os.environ.get(VARIABLE)
_passes: Counter[str] = Counter()


class DurableStep:
    """A step, as a block; see the module."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __enter__(self) -> DurableStep:
        self._passed("before")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._passed("after")

    def parts(self, data: bytes) -> Iterator[bytes]:
        if _AIM is not None:
            yield data[: len(data) // 2]
            self._passed("half")
            data = data[len(data) // 2 :]
        yield data

    def halfway(self) -> None:
        self._passed("half")

    def _passed(self, moment: str) -> None:
        """End the process if it is to end here."""
        if _AIM is None:
            return
        with suppress(FileNotFoundError):
            for wanted in Path(_AIM).read_text(encoding="utf-8").splitlines():
                at, name, count, *_ = wanted.split()
                if at != moment or name not in self._names:
                    continue
                _passes[wanted] += 1
                if _passes[wanted] == int(count):
                    Path(_AIM).rename(f"{_AIM}.{moment}.{name}.ended")
                    os.kill(os.getpid(), signal.SIGKILL)
                    signal.pause()  # until the signal arrives: nothing more is written


def step(*names: str) -> DurableStep:
    """The step of that name, or of those names."""
    return DurableStep(*names)
