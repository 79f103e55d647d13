"""The Spark that tests of the runtime run on: a small local one, or the cluster that an environment variable names."""

from __future__ import annotations

import os
from collections.abc import Mapping

from headgate.runtime.engine.masters import is_local

MASTER_VARIABLE = "HEADGATE_TEST_MASTER"
MASTER = os.environ.get(MASTER_VARIABLE, "local[2]")
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For processes that do not live long enough for a compiler that takes its time."""

SMALL_EXECUTORS: Mapping[str, str] = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": QUICK}
SETTINGS: Mapping[str, str] = {} if is_local(MASTER) else SMALL_EXECUTORS
