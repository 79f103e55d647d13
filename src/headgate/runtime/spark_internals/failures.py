"""What Spark raises when a job fails, and which line of it helps a user."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from headgate.store.secrets import SECRETS
from headgate.tasks.row_errors import SourceAwayError, TaskRaised, UnreadableSourceError

__all__ = [
    "JOB_FAILURES",
    "named_culprit",
    "reason_of",
    "source_is_away",
    "source_was_unreadable",
    "storage_refused",
    "workers_were_late",
]

JOB_FAILURES = (PySparkException, Py4JError, TaskRaised)
"""What a failing job raises, and what a task raises that cannot even be put into one."""

_WORKERS_LATE = ("Python worker failed to connect back", "the Python worker to connect back", "CANNOT_OPEN_SOCKET")

_REFUSED = re.compile(
    "No space left on device|Disk quota exceeded|Read-only file system|Input/output error|Permission denied"
    "|Stale file handle|Transport endpoint is not connected",
    re.IGNORECASE,
)

_NOISE = re.compile(r"(An error occurred while calling |py4j\.|at |\.\.\. \d+ more|File \"|Traceback )")
"""How lines begin that only a developer of Spark can use."""


def workers_were_late(failure: str) -> bool:
    """Whether a Python worker was not up within Spark's ten seconds, on an overloaded machine."""
    return any(sign in failure for sign in _WORKERS_LATE)


def storage_refused(failure: str) -> bool:
    """Whether a file system refused to read or write, and no task is to blame.

    >>> storage_refused("OSError: [Errno 28] No space left on device"), storage_refused("ValueError: no")
    (True, False)
    """
    return _REFUSED.search(failure) is not None and named_culprit(failure) is None


def source_was_unreadable(failure: str) -> bool:
    """Whether a source could not be read: then no task is to blame, and leaving one out helps nobody."""
    return f"{UnreadableSourceError.__name__}: " in failure or source_is_away(failure)


def source_is_away(failure: str) -> bool:
    """Whether a source did not answer; it is asked again by itself.

    >>> source_is_away("RuntimeError: SourceAwayError: Kafka at a:1 does not answer"), source_is_away("KeyError: 'a'")
    (True, False)
    """
    return f"{SourceAwayError.__name__}: " in failure


def named_culprit(failure: str) -> tuple[str, str] | None:
    """The task that a failure names, by its signature, and what it raised; ``None`` if it names none.

    >>> named_culprit("... headgate.tasks.row_errors.TaskRaised: [task 0af3] ValueError: no\\n\\tat org.apache.spark")
    ('0af3', 'ValueError: no')
    """
    match = re.search(r"\[task ([0-9a-f]+)\] ([^\n]*)", failure)
    return None if match is None else (match[1], SECRETS.hidden(match[2].strip())[:400])


def reason_of(failure: str) -> str:
    """The line of a failure that helps: the last error that Python raised, else the JVM's innermost cause.

    >>> java = "An error occurred while calling o9.save.\\n: org.apache.spark.SparkException: aborted\\n\\tat a.b(C)"
    >>> reason_of(f"{java}\\nCaused by: java.io.IOException: disk is full\\n\\t... 9 more")
    'IOException: disk is full'
    >>> reason_of("Traceback (most recent call last):\\n  File \\"f.py\\", line 1\\nValueError: no such city")
    'ValueError: no such city'
    >>> reason_of("Py4JError: An error occurred while calling o996.save")
    'Spark gave no reason'
    """
    lines = [line.strip().removeprefix(": ") for line in failure.splitlines() if line.strip()]
    lines = [line for line in lines if not _NOISE.match(re.sub(r"^(?:\w+\.)*Py4J\w+: ", "", line))]
    raised = [line for line in lines if re.match(r"(?!java\.|javax\.|scala\.|org\.)[\w.]*(Error|Exception)\b", line)]
    caused = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    best = (raised[-1:] or caused[-1:] or lines or ["Spark gave no reason"])[0]
    return SECRETS.hidden(re.sub(r"^(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Error|Exception)\b)", "", best))[:400]
