"""Which implementation of the internals fits a Spark session."""

from __future__ import annotations

from functools import lru_cache

from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.runtime.spark_internals.protocol import SparkInternals
from headgate.runtime.spark_internals.spark_4_3 import Spark43

__all__ = ["internals"]

KNOWN = {"4.3": Spark43}
"""The minor versions of Spark whose private parts are known."""


@lru_cache(maxsize=8)
def internals(spark: SparkSession) -> SparkInternals:
    """The private parts of a session; raises :class:`InputError` for a Spark of an unknown minor version."""
    minor = ".".join(spark.version.split(".")[:2])
    if minor not in KNOWN:
        wanted = " or ".join(KNOWN)
        message = f"this session runs Spark {spark.version}, and this Headgate works with Spark {wanted} only"
        remedy = f"install 'pyspark=={wanted}.*', and let SPARK_HOME, if it is set, name the same version"
        raise InputError("SPARK_VERSION", f"{message}; {remedy}")
    return KNOWN[minor](spark)
