"""What Headgate does for Spark's Python workers, from inside them."""

from __future__ import annotations

import gc
import sys

__all__ = ["settle"]

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
