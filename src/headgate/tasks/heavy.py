"""Libraries that tasks need when they run and not when they are checked: each is imported when it is first used.

Options and work of a task type stand side by side, and checking a dataflow must not wait for Spark or Arrow to load.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["F", "np", "orjson", "pa", "pc"]


class _Library:
    """Stands for a module, and has its attributes."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), attribute)
        setattr(self, attribute, value)  # the next time it is simply there
        return value


if TYPE_CHECKING:
    import numpy as np
    import orjson
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql import functions as F
else:
    np, orjson, pa, pc = map(_Library, ("numpy", "orjson", "pyarrow", "pyarrow.compute"))
    F = _Library("pyspark.sql.functions")
