"""Settings of all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Generated inputs are many and cheap; how long one of them may take is asserted where it matters.
settings.register_profile(
    "headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("headgate")

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for minutes spends half of them in its second compiler."""


def pytest_configure(config: pytest.Config) -> None:
    """Start Spark without its second compiler, except in the slow tier, which measures."""
    if "not slow" in config.option.markexpr:
        os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JVM)
