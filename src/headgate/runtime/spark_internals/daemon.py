"""The process that Spark's Python workers are forked from, with their imports done.

    python -m headgate.runtime.spark_internals.daemon pyspark.worker

Spark's own daemon imports nothing, and every worker takes half a second of CPU before its first row. A worker ends
whenever a task raises, and the epochs of others would wait for the next one to import Arrow and pandas. Spark keeps
such libraries out of its daemon because they start threads, which a fork does not copy: NumPy's are not started here,
and the one of Arrow's allocator is started again in the child by the allocator itself.
"""

from __future__ import annotations

import ctypes
import gc
import os
from contextlib import suppress

from headgate.runtime.spark_internals.worker_limits import leave_environment, set_limits
from headgate.tasks.isolated.settings import IsolationSettings
from headgate.tasks.isolated.starting import starter

__all__ = ["run"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGE_BYTES = 256 << 20, 32 << 20
"""How much freed memory a worker keeps, and from which size an allocation is mapped separately."""


def run() -> None:
    """Import, and fork workers as Spark asks for them."""
    leave_environment()
    set_limits()
    # A worker has one core of a machine that others use too; and NumPy reads this when it is imported.
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    _keep_memory()
    import pandas  # noqa: F401
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    import headgate.runtime.epochs.staging
    import headgate.runtime.keyed.host
    import headgate.tasks.frames  # noqa: F401

    if IsolationSettings.of().is_on:
        starter()  # of all workers, which are forked from here
    gc.collect()
    gc.freeze()  # a child that collects would copy every page that it looks at
    manager()


def _keep_memory() -> None:
    """Let workers keep what they free for the next batch: giving it back and asking anew costs a fault for each page.

    By glibc's ``mallopt``, and nothing where there is none; Arrow is asked to allocate by it too.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        for option, size_bytes in ((M_TRIM_THRESHOLD, KEPT_BYTES), (M_MMAP_THRESHOLD, LARGE_BYTES)):
            allocator.mallopt(option, size_bytes)


if __name__ == "__main__":
    run()
