"""The command as a whole: help, version, completion, slips, pipes, and what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headgate as package
from headgate.cli import main as main_module
from headgate_benchmarks import BENCHMARKS
from tests.cli.terminal import headgate, process

COMMANDS = ["validate", "show", "convert", "diff", "schema", "tasks", "bench"]


def test_without_arguments_help_is_shown() -> None:
    ran = headgate()
    assert all(command in ran.out for command in COMMANDS)
    assert headgate("--help").out == headgate("-h").out
    assert headgate("--help").status == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    ran = headgate(command, "--help")
    assert ran.status == 0
    assert f"headgate {command}" in ran.out
    assert "Example" in ran.out


def test_version() -> None:
    ran = headgate("--version")
    assert (ran.status, ran.out) == (0, f"headgate {package.__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["--nonsense"], ["nonsense"], ["validate", "--nonsense"], ["show"], ["diff", "a.yaml"]]
)
def test_slips_in_arguments_exit_with_status_2(arguments: list[str]) -> None:
    ran = headgate(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert "Usage:" in ran.err


def _script(*arguments: str, **env: str) -> str:
    done = subprocess.run(
        [Path(sys.executable).parent / "headgate", *arguments],
        capture_output=True,
        env={**os.environ, **env},
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    return done.stdout.decode("utf-8")


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o"), ("zsh", "#compdef headgate"), ("fish", "complete --")]
)
def test_completion_is_made_for_every_shell(shell: str, word: str) -> None:
    assert word in _script(_HEADGATE_COMPLETE=f"source_{shell}")


def test_completion_completes() -> None:
    completed = _script(_HEADGATE_COMPLETE="complete_bash", COMP_WORDS="headgate val", COMP_CWORD="1")
    assert completed.split() == ["validate"]


def test_an_internal_error_is_one_sentence_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def bug() -> None:
        raise ZeroDivisionError("the bug")

    monkeypatch.setattr(main_module, "application", lambda _: bug)
    monkeypatch.delenv("HEADGATE_TRACEBACK", raising=False)
    ran = headgate("tasks")
    assert ran.status == 70
    assert "internal error: ZeroDivisionError: the bug; this is a bug in Headgate" in ran.err
    assert "Traceback" not in ran.err
    monkeypatch.setenv("HEADGATE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        headgate("tasks")


def test_an_interrupted_command_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "application", lambda _: interrupt)
    assert headgate("tasks").status == 130


@pytest.mark.parametrize("command", ["tasks", "schema", "show {flow} -f svg"])
def test_a_reader_that_has_seen_enough_is_no_error(flow: Path, command: str) -> None:
    arguments = command.format(flow=flow)
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{sys.executable}' -m headgate {arguments} | head -c 1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""


def test_any_encoding_of_the_terminal_will_do(flow: Path) -> None:
    env = {"PYTHONIOENCODING": "latin-1"}
    for command in (["show", flow], ["show", flow, "-f", "svg"], ["--help"]):
        ran = process(*command, env=env)
        assert (ran.status, ran.err) == (0, "")
    assert r"cold \u2192 in" in process("show", flow, env=env).out


def test_module_and_script_are_the_same() -> None:
    assert _script("--version") == process("--version").out


HEAVY = "{'pyspark', 'pandas', 'pyarrow', 'py4j', 'fastapi', 'uvicorn', 'httpx', 'rich'}"


def test_checking_a_file_imports_nothing_heavy(flow: Path) -> None:
    source = (
        f"import sys\nsys.argv = ['headgate', 'validate', {str(flow)!r}]\nfrom headgate.cli.main import main\n"
        f"try:\n    main()\nexcept SystemExit as left:\n    assert not left.code\n"
        f"print(sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_benchmarks_are_listed_and_slips_told() -> None:
    ran = headgate("bench")
    assert ran.status == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == list(BENCHMARKS)
    ran = headgate("bench", "modle")
    assert ran.status == 2
    assert "unknown benchmark 'modle'; did you mean 'model'?" in ran.err


def test_a_package_without_benchmarks_says_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.cli.bench.entry_points", lambda **_: ())
    ran = headgate("bench", "model")
    assert (ran.status, ran.out) == (2, "")
    assert "the benchmarks are not installed" in ran.err
