"""The engine's end of its supervision: what its process reports, and how it ends with its supervisor or with Spark."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError, refused_write
from headgate.service.restarts import HEALTHY_S, is_passing, is_settled
from headgate.service.run import RunLimits, gone_condition, spark_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.model.status import EngineCrash, FragmentStatus
    from headgate.service.run import StateLock

__all__ = ["AGAIN", "EngineLink"]

AGAIN = 75
"""The exit status of an engine that is to be started again."""

LOOK_EVERY_S = 0.1


@dataclass(slots=True)
class EngineLink:
    """What an engine's process has from its supervisor; an engine without one has none of it."""

    channel: socket.socket | None = None
    lock: StateLock | None = None
    listener: socket.socket | None = None
    served_at: float | None = None
    """When the first engine of this supervisor began to serve, by the monotonic clock."""

    crash: EngineCrash | None = None
    """How the engine before this one has ended, if a dataflow may be the cause."""

    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when somebody wants the engine to stop."""

    _leaving: bool = False
    _serving_since: float = float("inf")

    def watch(self) -> None:
        """End when the supervisor ends, and at once when Spark's process does."""
        if self.channel is not None:
            threading.Thread(target=self._end_with_supervisor, daemon=True).start()
            threading.Thread(target=self._end_with_spark, daemon=True).start()
            usual = threading.excepthook
            # What other threads raise when Spark's process has ended says nothing new.
            threading.excepthook = lambda raised: usual(raised) if spark_end(patience_s=0.5) is None else None

    def send(self, **facts: object) -> None:
        """Report to the supervisor."""
        if self.channel is not None:
            with suppress(OSError):
                self.channel.sendall(json.dumps(facts).encode() + b"\n")

    def limits(self, limits: RunLimits) -> RunLimits:
        """What is left of the limits of a run, if engines before this one have run."""
        if limits.for_s is None or self.served_at is None:
            return limits
        left_s = self.served_at + limits.for_s - time.monotonic()
        return RunLimits(max(left_s, 0.001), limits.until_idle, limits.serve)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """The engine answers requests."""
        self._serving_since = time.monotonic()
        self.served_at = self.served_at or self._serving_since
        self.send(serving=True)
        yield
        self._leaving = True  # it stops now, whatever happens
        self.send(serving=False)

    def saw(self, fragments: Sequence[FragmentStatus]) -> None:
        """Note how the engine is doing."""
        if time.monotonic() >= self._serving_since + HEALTHY_S and is_settled(fragments):
            self._serving_since = float("inf")
            self.send(healthy=True)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Let the supervisor start another engine if this one fails for a reason that may pass."""
        try:
            yield
        except Exception as error:
            if self.channel is None or self._is_ending():
                raise
            known = error if isinstance(error, HeadgateError) else refused_write(error)
            condition, message = "INTERNAL", f"{type(error).__name__}: {error}"
            if (ended := spark_end(patience_s=0.3)) is not None:
                condition, message = gone_condition(), ended
            elif known is not None:
                condition, message = known.condition, known.message
            if is_passing(condition, has_served=self.served_at is not None):
                self._again(condition, message)
            raise

    def _end_with_supervisor(self) -> None:
        assert self.channel is not None
        with suppress(OSError):
            self.channel.recv(1)  # it never writes
        os.killpg(0, signal.SIGKILL)  # this process, and Spark's

    def _end_with_spark(self) -> None:
        while not self._is_ending():
            ended = spark_end()
            if ended is not None and not self._is_ending():
                self._again(gone_condition(), ended)
            self.stopping.wait(LOOK_EVERY_S)

    def _is_ending(self) -> bool:
        return self._leaving or self.stopping.is_set()

    def _again(self, condition: str, message: str) -> None:
        """End this process; what it was doing is done again by the next one."""
        self.send(ended=condition, message=message)
        sys.stdout.flush()
        os._exit(AGAIN)
