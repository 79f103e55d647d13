"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Generated inputs are many and cheap; how long one of them may take is asserted where it matters.
settings.register_profile(
    "headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("headgate")
