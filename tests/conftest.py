"""Settings of all tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Generated inputs are many and cheap; how long one of them may take is asserted where it matters.
settings.register_profile(
    "headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("headgate")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share the one Spark of the run go one after the other; those with processes of their own, beside.

    First of all hooks: pytest-xdist reads the marks in its own.
    """
    for item in items:
        if item.get_closest_marker("spark") is not None:
            shares = "spark" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("shared Spark" if shares else "own processes"))
