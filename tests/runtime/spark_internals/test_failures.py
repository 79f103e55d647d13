"""Texts of authors and of rows within what Spark raises: they blame nobody, and stop nothing."""

from __future__ import annotations

import pytest

from headgate.runtime.spark_internals.failures import (
    named_culprit,
    source_is_away,
    source_was_unreadable,
    storage_refused,
    workers_were_late,
)

SAYS = {
    "OSError: [Errno 28] No space left on device": storage_refused,
    "UnreadableSourceError: gone": source_was_unreadable,
    "SourceAwayError: gone": source_is_away,
    "Python worker failed to connect back": workers_were_late,
    "TaskRaised: [task 0af3] ValueError: no": named_culprit,
}
LOST = "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0: "
IN_JVM = (
    "[USER_RAISED_EXCEPTION] {} SQLSTATE: P0001",
    LOST + "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] {} SQLSTATE: P0001",
    LOST + "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value '{}' cannot be cast",
)
IN_PYTHON = "PythonException: Traceback (most recent call last):\nheadgate.TaskRaised: [task abc1] ValueError: {}\n"


@pytest.mark.parametrize("text", SAYS)
def test_spark_itself_says_so(text: str) -> None:
    assert SAYS[text](f"Job aborted due to stage failure: org.apache.spark.SparkException: {text}\n\tat a.b(C)")


@pytest.mark.parametrize("text", SAYS)
@pytest.mark.parametrize("where", IN_JVM)
def test_an_expression_says_so(text: str, where: str) -> None:
    assert not SAYS[text](where.format(text))


@pytest.mark.parametrize("text", SAYS)
def test_a_function_says_so(text: str) -> None:
    culprit = named_culprit(IN_PYTHON.format(text))
    assert culprit is not None
    assert culprit[0] == "abc1"
    if SAYS[text] is not named_culprit:
        assert not SAYS[text](IN_PYTHON.format(text))
