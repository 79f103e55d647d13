"""What Headgate does for Spark's Python workers, from inside them."""

from __future__ import annotations

import gc
import os
import sys
from functools import lru_cache
from pathlib import Path

__all__ = ["executor_id", "settle"]

_seen = 0


def settle() -> None:
    """Hide what a worker has loaded from Python's collector, whenever it has loaded more.

    After every Spark task a worker collects garbage in full and takes no other task meanwhile. Looking through the
    modules of pyarrow, pandas and the like takes it a tenth of a second, as long as all the rest of a small task.
    """
    global _seen
    if len(sys.modules) > _seen:
        _seen = len(sys.modules)
        gc.freeze()


@lru_cache(maxsize=1)
def executor_id() -> str:
    """The executor that this worker belongs to; empty where that is not known, as in a local Spark.

    Spark's task context does not have it, so it is read from the command line of the executor's process.
    """
    pid = os.getppid()
    while pid > 1:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            parent = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
        except OSError:
            return ""
        if "--executor-id" in words[:-1]:
            return words[words.index("--executor-id") + 1]
        pid = int(parent)
    return ""
