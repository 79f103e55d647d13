"""Processes that tests start: each leads a session, prints into a file, and is ended with all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["PATIENCE_S", "ROOT", "end", "start"]

ROOT = Path(__file__).parents[1]
PATIENCE_S = float(os.environ.get("HEADGATE_TEST_PATIENCE_S", "240"))
"""How long to wait for what must come; a machine with much else to do may need more."""


def start(command: Sequence[str], folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    """Start a program of this checkout in a folder, with its output in the file ``log``."""
    paths = os.pathsep.join(map(str, (ROOT / "src", ROOT)))
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths, **environment},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of it behind, whatever happened."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
