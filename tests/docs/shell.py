"""The shell of a documentation page: runs its commands one after the other, as a reader would type them.

``headgate`` runs in this process, and so do dataflows, on the Spark that the tests share: starting one for each command
would take most of the time. ``headgate run`` without an end keeps running beside the commands that follow it, as it
does in a terminal of its own; it is stopped when the page ends. Long ``--for`` spans are cut to a few seconds.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from headgate.cli.main import app, main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Shell", "let_workers_import", "needs_spark", "run_headgate"]

LONGEST_RUN = "3s"
QUICK = ("--trigger", "100ms")
STARTED_WITHIN_S = 60.0
TERMINAL = "another terminal"
ON_SPARK = (
    "run",
    "serve",
    "token",
    "submit",
    "withdraw",
    "list",
    "status",
    "top",
    "observations",
    "dead-letters",
    "bill",
    "cluster",
    "experiment",
    "traces",
)
_NEEDS_SPARK = re.compile(rf"^\$ headgate ({'|'.join(ON_SPARK)})\b|\bEngine\(", re.MULTILINE)


def needs_spark(block: str) -> bool:
    """Whether a block of a page can only run on Spark.

    >>> needs_spark("$ headgate run hot.yaml"), needs_spark("$ headgate show hot.yaml")
    (True, False)
    """
    return bool(_NEEDS_SPARK.search(block))


def let_workers_import(spark: SparkSession, folder: Path) -> None:
    """Functions beside the examples can be imported by workers, as ``headgate run`` sees to with a Spark of its own."""
    places = [folder, *(path for path in (folder / "examples").iterdir() if path.is_dir())]
    inherited = os.environ.get("PYTHONPATH", "")
    spark.sparkContext.environment["PYTHONPATH"] = os.pathsep.join([*map(str, places), inherited])


class Shell:
    """Runs commands and keeps what runs in the background; a context manager that stops it in the end."""

    def __init__(self) -> None:
        self.status = 0
        self._background: list[_Background] = []

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if Path(".headgate-cluster").exists():
            run_headgate(["cluster", "down"])

    def stop(self) -> None:
        """What Ctrl-C does in the terminals in which ``headgate run`` runs."""
        while self._background:
            self._background.pop().stop()

    def run(self, command: str) -> str:
        """Run a command; returns what it printed, on both channels."""
        if command == "echo $?":
            return f"{self.status}\n"
        if command == "# Ctrl-C":
            self.stop()
            return ""
        name, *words = shlex.split(command, comments=True)
        words = [match for word in words for match in _expanded(word)]
        if name == "headgate" and words[:1] in (["run"], ["serve"]):
            return self._run_dataflows(words)
        if name == "headgate":
            printed, self.status = run_headgate(words)
        else:
            printed, self.status = _as_process([sys.executable if name == "python" else name, *words])
        return printed

    def _run_dataflows(self, words: list[str]) -> str:
        if "--for" in words:
            words[words.index("--for") + 1] = LONGEST_RUN
        if "--for" in words or "--until-idle" in words:
            printed, self.status = run_headgate([*words, *QUICK])
            return printed
        self._background.append(_Background(words))
        return ""


def run_headgate(words: list[str]) -> tuple[str, int]:
    """Run ``headgate WORDS`` in this process; returns what it printed, on both channels, and its exit status."""
    printed = _Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = _main(words)
    return printed.getvalue(), status


def _main(words: list[str]) -> int:
    with mock.patch.object(sys, "argv", ["headgate", *words]):
        try:
            main()
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _as_process(words: list[str]) -> tuple[str, int]:
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=120, check=False
    )
    return done.stdout, done.returncode


def _expanded(word: str) -> list[str]:
    return sorted(glob.glob(word)) or [word] if "*" in word else [word]  # noqa: PTH207 - as a shell does


class _Printed(io.StringIO):
    """What a command prints, without what ``headgate run`` prints meanwhile in its own terminal."""

    def write(self, text: str) -> int:
        # Bytes are refused from either thread: click takes a stream that accepts them for a binary one.
        return super().write(text[:0] if threading.current_thread().name == TERMINAL else text)


class _Background:
    """``headgate run`` in a thread, until it is stopped by the signal handlers that it has installed."""

    def __init__(self, words: list[str]) -> None:
        self._handlers: dict[int, Callable[[int, None], None]] = {}
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, args=(words,), name=TERMINAL, daemon=True)
        self._thread.start()
        state = words[words.index("--state") + 1] if "--state" in words else ".headgate"
        until = time.monotonic() + STARTED_WITHIN_S
        while run_headgate(["list", "--state", state])[1] != 0:
            assert self._thread.is_alive(), f"'headgate {shlex.join(words)}' has ended: {self._error}"
            assert time.monotonic() < until, f"'headgate {shlex.join(words)}' does not answer"
            time.sleep(0.1)

    def _work(self, words: list[str]) -> None:
        # Only the main thread may install handlers.
        with mock.patch.object(signal, "signal", self._handlers.__setitem__):
            try:
                app([*words, *QUICK], standalone_mode=False)
            except BaseException as error:
                self._error = error

    def stop(self) -> None:
        self._handlers[signal.SIGINT](signal.SIGINT, None)
        self._thread.join(STARTED_WITHIN_S)
        assert not self._thread.is_alive(), "it does not stop"
        assert self._error is None, self._error
