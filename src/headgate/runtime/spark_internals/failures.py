"""What Spark raises when a job fails, and which line of it helps a user."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from headgate.store.secrets import SECRETS
from headgate.tasks.row_errors import SourceAwayError, TaskRaised, UnreadableSourceError

__all__ = [
    "JOB_FAILURES",
    "is_of_rows",
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

_OF_ROWS = re.compile(
    r"(?:\A\s*|\bSpark(?:Runtime|Arithmetic|NumberFormat|DateTime|ArrayIndexOutOfBounds|IllegalArgument|NoSuchElement"
    r"|UnsupportedOperation)Exception: )"
    r"\[(?:USER_RAISED|CAST_|DIVIDE_BY|REMAINDER_BY|ARITHMETIC_|BINARY_ARITHMETIC|NUMERIC_|INVALID_|MALFORMED_|DATETIME_"
    r"|CANNOT_PARSE|CONVERSION_|DUPLICATED_MAP|NULL_MAP|MAP_|COLLECTION_|ELEMENT_|INTERVAL_|VALUE_|UNRECOGNIZED_|ILLEGAL_)"
    r"[A-Z0-9_.]*\] "
)
"""How Spark begins what an expression raises for a row; what follows may have texts of its author and of the row."""

_NOISE = re.compile(r"(An error occurred while calling |py4j\.|at |\.\.\. \d+ more|File \"|Traceback )")
"""How lines begin that only a developer of Spark can use."""


def is_of_rows(failure: str) -> bool:
    """Whether an expression has raised something for a row: whatever the message says then is somebody's text.

    >>> is_of_rows("[USER_RAISED_EXCEPTION] No space left on device SQLSTATE: P0001")
    True
    >>> is_of_rows("... PythonException: Traceback\\n... SparkRuntimeException: [CAST_INVALID_INPUT] The value 'x'")
    False
    """
    match = _OF_ROWS.search(failure)
    return match is not None and "PythonException" not in failure[: match.start()]


def workers_were_late(failure: str) -> bool:
    """Whether a Python worker was not up within Spark's ten seconds, on an overloaded machine."""
    if is_of_rows(failure) or named_culprit(failure) is not None:
        return False
    return any(sign in failure for sign in _WORKERS_LATE)


def storage_refused(failure: str) -> bool:
    """Whether a file system refused to read or write, and no task is to blame.

    >>> storage_refused("OSError: [Errno 28] No space left on device"), storage_refused("ValueError: no")
    (True, False)
    >>> storage_refused("[USER_RAISED_EXCEPTION] No space left on device SQLSTATE: P0001")
    False
    """
    if is_of_rows(failure) or named_culprit(failure) is not None:
        return False
    return _REFUSED.search(failure) is not None


def source_was_unreadable(failure: str) -> bool:
    """Whether a source could not be read: then no task is to blame, and leaving one out helps nobody."""
    return _is_of_source(failure, UnreadableSourceError) or source_is_away(failure)


def source_is_away(failure: str) -> bool:
    """Whether a source did not answer; it is asked again by itself.

    >>> source_is_away("RuntimeError: SourceAwayError: Kafka at a:1 does not answer"), source_is_away("KeyError: 'a'")
    (True, False)
    """
    return _is_of_source(failure, SourceAwayError)


def _is_of_source(failure: str, kind: type[UnreadableSourceError]) -> bool:
    if is_of_rows(failure) or named_culprit(failure) is not None:
        return False
    return f"{kind.__name__}: " in failure


def named_culprit(failure: str) -> tuple[str, str] | None:
    """The task that a failure names, by its signature, and what it raised; ``None`` if it names none.

    >>> named_culprit("... headgate.tasks.row_errors.TaskRaised: [task 0af3] ValueError: no\\n\\tat org.apache.spark")
    ('0af3', 'ValueError: no')
    >>> named_culprit("[USER_RAISED_EXCEPTION] TaskRaised: [task 0af3] of somebody else SQLSTATE: P0001")
    """
    if is_of_rows(failure):
        return None
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
