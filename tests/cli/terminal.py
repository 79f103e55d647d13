"""Commands as a user runs them: within this process, or as a process of their own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from headgate.cli.main import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def said(self) -> str:
        return self.out + self.err


def headgate(*arguments: str | Path) -> Ran:
    """Run a command within this process, through the same door as the script."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with (
        mock.patch.object(sys, "argv", ["headgate", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else int(left.code is not None)
    return Ran(status, out.getvalue(), err.getvalue())


def process(*arguments: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> Ran:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "headgate", *map(str, arguments)],
        capture_output=True,
        timeout=60,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONWARNINGS": "error", **(env or {})},
    )
    return Ran(done.returncode, done.stdout.decode("utf-8", errors="replace"), done.stderr.decode("utf-8"))
