"""The process that Spark's Python workers are forked from, with all imported that they are going to need.

    python -m headgate.runtime.daemon pyspark.worker

Spark's own daemon imports nothing, and every worker takes half a second of CPU before its first row. A worker ends
whenever a task raises, and the epochs of others would wait for the next one to import Arrow and pandas. Spark keeps
such libraries out of its daemon because they start threads, which a fork does not copy: NumPy's are not started here,
and the one of Arrow's allocator is started again in the child by the allocator itself.
"""

from __future__ import annotations

import gc
import os

__all__ = ["run"]


def run() -> None:
    """Import, and fork workers as Spark asks for them."""
    # A worker has one core of a machine that others use too; and NumPy reads this when it is imported.
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    import pandas  # noqa: F401
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    import headgate.runtime.host
    import headgate.runtime.staging
    import headgate.tasks.frames  # noqa: F401

    gc.collect()
    gc.freeze()  # a child that collects would copy every page that it looks at
    manager()


if __name__ == "__main__":
    run()
