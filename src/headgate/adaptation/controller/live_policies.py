"""The policies that decide for a running engine, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from headgate.adaptation.policies.pooled_target import PooledTarget
from headgate.adaptation.policy import Policy
from headgate.adaptation.pooled.catalogue import POOLED, pooled_policy
from headgate.errors import unknown

__all__ = ["DEFAULT_POLICY", "FALLBACK_POLICY", "LIVE_POLICIES", "live_policy"]

LIVE_POLICIES: Mapping[str, Callable[[], Policy]] = {
    **{name: partial(pooled_policy, name) for name in POOLED},
    "threshold": PooledTarget,
}
DEFAULT_POLICY = "threshold"
FALLBACK_POLICY = "ce"
"""What decides in place of a policy that predicts badly."""


def live_policy(name: str) -> Policy:
    """A policy by its name; raises :class:`InputError` with the nearest one."""
    if name not in LIVE_POLICIES:
        raise unknown("UNKNOWN_POLICY", f"no policy '{name[:60]}' decides for engines", name, LIVE_POLICIES)
    return LIVE_POLICIES[name]()
