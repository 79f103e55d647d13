"""Operators that are each bound by one thing: the processor, moving rows, waiting, or memory.

The four patterns of P-Deployer's micro-benchmarks (Liu and Buyya, Performance-oriented deployment of streaming
applications on cloud, 2019, section 7.1.1), as functions that a ``python`` task calls with a row. Each passes on its
row, or several copies of it: ``copies`` is the operator's selectivity.
"""

import json
import random
import time
from collections import deque
from datetime import datetime
from typing import Any

__all__ = ["Held", "cpu", "held", "io", "memory", "wait"]

Row = dict[str, Any]


def cpu(row: Row, calls: int = 30_000, copies: int = 1) -> list[Row]:
    """Draw so many random numbers: nothing but the processor is needed, about a millisecond of it."""
    draw = random.Random(row["id"])
    total = 0.0
    for _ in range(calls):
        total += draw.random()
    assert 0.0 <= total <= calls
    return [row] * copies


def io(row: Row, copies: int = 1) -> list[Row]:
    """Parse the message and pass it on: what it takes to move the row outweighs what is done to it."""
    parsed = json.loads(row["message"])
    if parsed["id"] != row["id"]:
        raise ValueError(f"message of row {parsed['id']} in row {row['id']}")
    return [row] * copies


def wait(row: Row, wait_s: float = 0.01, copies: int = 1) -> list[Row]:
    """Wait, as for an answer of another service: neither processor nor memory is needed, only time."""
    time.sleep(wait_s)
    return [row] * copies


class Held:
    """The messages of a sliding window of event time, which a worker keeps in memory."""

    def __init__(self, window_s: float, slide_s: float) -> None:
        self.window_s, self.slide_s = window_s, slide_s
        self.messages: deque[tuple[float, str]] = deque()
        self.bytes = 0
        self._slid = float("-inf")

    def add(self, at_s: float, message: str) -> None:
        """Keep a copy of a message; what is older than the window goes whenever it slides."""
        self.messages.append((at_s, message[:1] + message[1:]))
        self.bytes += len(message)
        if at_s - self._slid >= self.slide_s:
            self._slid = at_s
            while self.messages and self.messages[0][0] < at_s - self.window_s:
                self.bytes -= len(self.messages.popleft()[1])


held: dict[str, Held] = {}
"""What this worker keeps, by operator."""


def memory(
    row: Row, operator: str = "memory", window_s: float = 300.0, slide_s: float = 60.0, copies: int = 1
) -> list[Row]:
    """Keep all messages of the last five minutes, and let go of older ones every minute."""
    at: datetime = row["at"]
    held.setdefault(operator, Held(window_s, slide_s)).add(at.timestamp(), row["message"])
    return [row] * copies
