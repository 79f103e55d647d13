"""A Spark whose private parts are not known is refused, and what Spark raises is made readable."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from headgate.cli.main import main
from headgate.errors import InputError
from headgate.runtime.engine import engine
from headgate.runtime.spark_internals.failures import reason_of, workers_were_late
from headgate.runtime.spark_internals.internals import internals


class OtherSpark:
    """As much of a session as is looked at before it is refused."""

    version = "4.2.1"


def test_another_minor_version_of_spark_is_refused() -> None:
    with pytest.raises(InputError) as raised:
        internals(cast(Any, OtherSpark()))
    assert raised.value.condition == "SPARK_VERSION"
    assert "4.2.1" in raised.value.message
    assert "pyspark==4.3.*" in raised.value.message


PY4J = "An error occurred while calling o996.save.\n: "
SQL = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"
PYTHON = (
    'org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File "/w.py", line 3, in f\n'
)
CAUSES = "Caused by: java.io.IOException: b\n\tat a.B(C)\nCaused by: java.net.SocketException: closed\n\t... 3 more"


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (f"{PY4J}java.lang.AssertionError: no\n\tat a.B(C)", "AssertionError: no"),
        (f"{PY4J}org.apache.spark.SparkException: a\n{CAUSES}", "SocketException: closed"),
        (f"{SQL}\n== SQL ==\n1 / 0", SQL),
        (f"{PYTHON}tests.functions.CityError: unknown\n\n\tat org.apache.spark.Runner(B)", "CityError: unknown"),
        ("", "Spark gave no reason"),
    ],
)
def test_users_read_the_cause_and_nothing_of_py4j(failure: str, reason: str) -> None:
    assert reason_of(failure) == reason


def test_a_slow_start_of_workers_is_told_from_a_fault() -> None:
    cause = "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"
    late = f"{PY4J}org.apache.spark.SparkException: Python worker failed to connect back.\n\tat a.b\nCaused by: {cause}"
    assert workers_were_late(late)
    assert workers_were_late(reason_of(late)), "the engine sees the reason only"
    assert not workers_were_late("ValueError: Python worker")


def test_the_command_line_refuses_it_with_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(engine, "open_session", lambda *_args, **_more: internals(cast(Any, OtherSpark())))
    monkeypatch.setattr("sys.argv", ["headgate", "run", "--state", str(tmp_path / "state")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "this session runs Spark 4.2.1" in message
    assert "Traceback" not in message
