"""The shell of a documentation page: runs its commands one after the other, as a reader would type them.

``headgate`` runs in this process, and so do dataflows, on the Spark that the tests share: starting one for each command
would take most of the time. ``headgate run`` without an end keeps running beside the commands that follow it, as it
does in a terminal of its own; it is stopped when the page ends. Long ``--for`` spans are cut to a few seconds.
"""

from __future__ import annotations

import contextlib
import glob
import io
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from unittest import mock

from headgate.cli.main import app, main

__all__ = ["Shell", "needs_spark", "run_headgate"]

LONGEST_RUN = "3s"
QUICK = ("--trigger", "100ms")
STARTED_WITHIN_S = 60.0
ON_SPARK = ("run", "submit", "withdraw", "list", "status", "top", "observations", "dead-letters", "bill", "cluster")
_NEEDS_SPARK = re.compile(rf"^\$ headgate ({'|'.join(ON_SPARK)})\b|\bEngine\(", re.MULTILINE)


def needs_spark(block: str) -> bool:
    """Whether a block of a page can only run on Spark.

    >>> needs_spark("$ headgate run hot.yaml"), needs_spark("$ headgate show hot.yaml")
    (True, False)
    """
    return bool(_NEEDS_SPARK.search(block))


class Shell:
    """Runs commands and keeps what runs in the background; a context manager that stops it in the end."""

    def __init__(self) -> None:
        self.status = 0
        self._background: list[_Background] = []

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

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
        if name == "headgate" and words[:1] == ["run"]:
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
    printed = io.StringIO()
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


class _Background:
    """``headgate run`` in a thread, until it is stopped by the signal handlers that it has installed."""

    def __init__(self, words: list[str]) -> None:
        self._handlers: dict[int, Callable[[int, None], None]] = {}
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, args=(words,), daemon=True)
        self._thread.start()
        state = words[words.index("--state") + 1] if "--state" in words else ".headgate"
        until = time.monotonic() + STARTED_WITHIN_S
        while run_headgate(["list", "--state", state])[1] != 0:
            assert self._thread.is_alive(), f"'headgate {shlex.join(words)}' has ended: {self._error}"
            assert time.monotonic() < until, f"'headgate {shlex.join(words)}' does not answer"
            time.sleep(0.1)

    def _work(self, words: list[str]) -> None:
        # Only the main thread may install handlers; --json keeps it from printing between other commands' lines.
        with mock.patch.object(signal, "signal", self._handlers.__setitem__):
            try:
                app([*words, *QUICK, "--json"], standalone_mode=False)
            except BaseException as error:
                self._error = error

    def stop(self) -> None:
        self._handlers[signal.SIGINT](signal.SIGINT, None)
        self._thread.join(STARTED_WITHIN_S)
        assert not self._thread.is_alive(), "it does not stop"
        assert self._error is None, self._error
