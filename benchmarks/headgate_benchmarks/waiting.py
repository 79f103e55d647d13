"""Tasks that wait for something else, as those that ask a remote service do: what benchmarks on two cores scale."""

from __future__ import annotations

import random
import time
from typing import Any

__all__ = ["serve", "service_s", "wait"]


def wait(row: dict[str, Any], seconds: float = 0.02) -> dict[str, Any]:
    """Hand a row on after a while."""
    time.sleep(seconds)
    return row


def service_s(task: str, row: int, round_: int, mean_s: float, scv: float) -> float:
    """The service time of a row at a task: from a gamma distribution, the same whenever it is asked for.

    >>> service_s("match", 7, 0, 0.2, 0.5) == service_s("match", 7, 0, 0.2, 0.5)
    True
    >>> times = [service_s("match", row, 0, 0.2, 0.5) for row in range(20_000)]
    >>> round(sum(times) / len(times), 2)
    0.2
    """
    if scv == 0:
        return mean_s
    return random.Random(f"{task} {row} {round_}").gammavariate(1 / scv, mean_s * scv)


def serve(row: dict[str, Any], task: str, mean_s: float, scv: float = 1.0, last: bool = False) -> dict[str, Any]:
    """Hand a row on after its service time; the ``last`` task of a loop takes one from the ``rounds`` it has to go."""
    rounds = row.get("rounds", 0)
    time.sleep(service_s(task, row["id"], rounds, mean_s, scv))
    return {**row, "rounds": rounds - 1} if last else row
