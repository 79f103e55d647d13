"""What Spark raises when a job fails, and what of that is worth telling."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from headgate.tasks.guard import TaskRaised

__all__ = ["JOB_FAILURES", "named_culprit", "reason_of", "workers_were_late"]

JOB_FAILURES = (PySparkException, Py4JJavaError, TaskRaised)
"""What a job raises that fails, and what a task raises that cannot even be put into one."""

_WORKERS_LATE = ("Python worker failed to connect back", "CANNOT_OPEN_SOCKET")


def workers_were_late(told: str) -> bool:
    """Whether a Python worker was not up within Spark's ten seconds, on a machine that has too much to do."""
    return any(sign in told for sign in _WORKERS_LATE)


def named_culprit(told: str) -> tuple[str, str] | None:
    """The task that a failure names, by its signature, and what it raised; ``None`` if it names none.

    >>> named_culprit("... headgate.tasks.guard.TaskRaised: [task 0af3] ValueError: no\\n\\tat org.apache.spark")
    ('0af3', 'ValueError: no')
    """
    found = re.search(r"\[task ([0-9a-f]+)\] ([^\n]*)", told)
    return None if found is None else (found[1], found[2].strip()[:400])


def reason_of(told: str) -> str:
    """The telling line of a failure: the last error that Python raised, or else the first line."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (raised[-1:] or lines or [told])[0][:400]
