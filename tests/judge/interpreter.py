"""The program that Spark takes for Python: it asks :mod:`tests.judge.fork_server` for a fork, and ends with it."""

from __future__ import annotations

from pathlib import Path

from headgate.runtime.spark_internals.forked_python import write_program

__all__ = ["interpreter"]


def interpreter(folder: Path, address: Path) -> Path:
    """Write the program that Spark takes for Python: whatever module it runs, it is a fork."""
    path = folder / "python"
    write_program(path, address, ["*"])
    return path
